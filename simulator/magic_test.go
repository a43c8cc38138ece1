package simulator_test

import (
	"net/http"
	"testing"
)

func TestMagicNumbers(t *testing.T) {
	rig := start(t)
	magic := "+1500555000"
	for _, test := range []struct {
		path, field, digit string
		code               int // 0: taken
	}{
		{"/Messages.json", "From", "1", 21212},
		{"/Messages.json", "From", "7", 21606},
		{"/Messages.json", "From", "8", 21611},
		{"/Messages.json", "From", "6", 0},
		{"/Messages.json", "From", "5", 0},
		{"/Messages.json", "To", "1", 21211},
		{"/Messages.json", "To", "2", 21612},
		{"/Messages.json", "To", "3", 21408},
		{"/Messages.json", "To", "4", 21610},
		{"/Messages.json", "To", "9", 21614},
		{"/Messages.json", "To", "5", 0},
		{"/Calls.json", "From", "1", 21212},
		{"/Calls.json", "From", "7", 21210},
		{"/Calls.json", "From", "8", 21210},
		{"/Calls.json", "From", "6", 0},
		{"/Calls.json", "To", "1", 21217},
		{"/Calls.json", "To", "2", 21214},
		{"/Calls.json", "To", "3", 21215},
		{"/Calls.json", "To", "4", 21216},
		{"/Calls.json", "To", "9", 0},
	} {
		t.Run(test.path+" "+test.field+" "+magic+test.digit, func(t *testing.T) {
			form := messageForm(nil)
			if test.path == "/Calls.json" {
				form = callForm(nil)
			}
			form.Set(test.field, magic+test.digit)
			status, body := rig.api("POST", test.path, form)
			if test.code != 0 {
				checkFailure(t, status, body, http.StatusBadRequest, test.code)
			} else if status != http.StatusCreated {
				t.Errorf("answered %d %v, want 201", status, body)
			}
		})
	}
}
