package carrier

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestAFormIsReadAsNetURLReadsIt(t *testing.T) {
	for _, encoded := range []string{
		"", "&", "=", "a", "a=", "=b", "a=b", "a=b=c", "a=b&", "&a=b&&c=d", "b=1&a=2", "a=2&b=0&a=1&a=2",
		"a=+x%20%2B", "a+b=c", "%61=1&a=2", "a=%E5%B1%8A%E3%81%8F", "a=%00", "a=\xff",
		"a=%zz", "%zz=a", "a=%", "a=%2", "a;b", "a=b;c=d", "a=%3B", "a=b&c=%zz", "a=%zz&b=c",
	} {
		want, wantErr := url.ParseQuery(encoded)
		form, err := ParseForm(encoded)
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%q: error %v, net/url has %v", encoded, err, wantErr)
		}
		if err != nil {
			continue
		}
		got := url.Values{}
		for _, p := range form {
			got[p.name] = append(got[p.name], p.value)
		}
		if got.Encode() != want.Encode() || !slices.IsSortedFunc(form, func(a, b parameter) int { return strings.Compare(a.name, b.name) }) {
			t.Errorf("%q: %v, want %v", encoded, form, want)
		}
		for name := range want {
			if form.Get(name) != want.Get(name) {
				t.Errorf("%q: %s is %q, want %q", encoded, name, form.Get(name), want.Get(name))
			}
		}
		if form.Get("another") != "" {
			t.Errorf("%q has a parameter that it has not", encoded)
		}
	}
}

func TestAFormOfTooManyParametersIsRefused(t *testing.T) {
	if form, err := ParseForm(strings.Repeat("a=b&", maxParameters-1) + "a=b"); err != nil || len(form) != maxParameters {
		t.Errorf("%d parameters: %d, %v", maxParameters, len(form), err)
	}
	if _, err := ParseForm(strings.Repeat("a=b&", maxParameters) + "a=b"); err == nil {
		t.Errorf("%d parameters were read", maxParameters+1)
	}
}
