package settings

import (
	"slices"
	"testing"
)

func TestMisspelledSettingsAreNamed(t *testing.T) {
	s, err := LoadFrom(map[string]string{"TODOKU_ADRR": ":1", "TODOKU_ADDR": ":80", "TODOKU_API_KEY_FILE": "", "TODOKU_URL": "", "SMS_SEND_INTERVALL": "1s"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"TODOKU_ADRR"}; !slices.Equal(s.Unknown(), want) {
		t.Errorf("unknown are %v, want %v", s.Unknown(), want)
	}
}
