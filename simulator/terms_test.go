package simulator

import (
	"reflect"
	"testing"
	"time"
)

func TestTermsInTheFragment(t *testing.T) {
	defaults := terms{
		connectTimeout: 5 * time.Second, readTimeout: 15 * time.Second, totalTimeout: 15 * time.Second,
		retries: 1, policy: []string{"ct"},
	}
	for fragment, want := range map[string]terms{
		"": defaults,
		"ct=100&rt=200&tt=300&rc=0&rp=4xx,rt": {
			connectTimeout: 100 * time.Millisecond, readTimeout: 200 * time.Millisecond,
			totalTimeout: 300 * time.Millisecond, retries: 0, policy: []string{"4xx", "rt"},
		},
		"ct=99&rt=15001&tt=soon&rc=6&e=tokyo": defaults,
		"rc=%zz":                              defaults,
	} {
		if got := parseTerms(fragment); !reflect.DeepEqual(got, want) {
			t.Errorf("#%s: %+v, want %+v", fragment, got, want)
		}
	}
}
