package carrier

import (
	"io"
	"net/url"
	"strings"
	"testing"
)

// BenchmarkReceive reads a callback and checks its signature.
func BenchmarkReceive(b *testing.B) {
	const publicURL, target = "https://todoku.example.com", "/hook?id=019adf00-0000-7000-8000-000000000000"
	v, err := NewSignatureValidator(testToken, publicURL)
	if err != nil {
		b.Fatal(err)
	}
	form := url.Values{
		"MessageSid": {testMessage}, "SmsSid": {testMessage}, "MessageStatus": {"delivered"}, "SmsStatus": {"delivered"},
		"To": {"+819012345678"}, "From": {"+15005550006"}, "AccountSid": {"AC" + strings.Repeat("0", 32)}, "ApiVersion": {"2010-04-01"},
	}
	r := callback(target, "", Sign(testToken, publicURL+target, form))
	body := strings.NewReader(form.Encode())
	r.Body = io.NopCloser(body)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			b.Fatal(err)
		}
		if _, err := v.Receive(r); err != nil {
			b.Fatal(err)
		}
	}
}
