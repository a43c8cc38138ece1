package notify

import "testing"

// BenchmarkParsePhoneNumber reads numbers as an office types them.
func BenchmarkParsePhoneNumber(b *testing.B) {
	inputs := []string{"090-1234-5678", "+818012345678", "０７０ー１２３４ー５６７８", "03-1234-5678"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := ParsePhoneNumber(inputs[i%len(inputs)], "JP"); err != nil {
			b.Fatal(err)
		}
	}
}
