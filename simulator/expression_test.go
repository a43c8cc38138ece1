package simulator

import (
	"encoding/json"
	"testing"
)

func TestExpressionsPickByAttributes(t *testing.T) {
	const attributes = `{"skills": ["sales", "support"], "language": "ja", "level": 5.1, "vip": true,
		"address": {"city": "Tokyo"}, "none": null}`
	var worker map[string]any
	if err := json.Unmarshal([]byte(attributes), &worker); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`1 == 1`:                     true,
		`1==1`:                       true,
		`0 != 1`:                     true,
		`"apple" == 'apple'`:         true,
		`skills HAS "sales"`:         true,
		`skills HAS 'billing'`:       false,
		`language HAS "ja"`:          true,
		`language IN ["ja", "en"]`:   true,
		`language in ['en']`:         false,
		`language NOT IN ['en']`:     true,
		`"sales" IN skills`:          true,
		`language CONTAINS "j"`:      true,
		`level >= 5.1 AND level < 6`: true,
		`level > -1`:                 true,
		`level <= 5`:                 false,
		`level > "5"`:                false,
		`vip == true`:                true,
		`vip = false`:                false,
		`address.city == "Tokyo"`:    true,
		`address.zip == "100"`:       false,
		`address.zip != "100"`:       true,
		`skills == skills`:           false,
		`nobody == nothing`:          false,
		`(language == "en" OR vip == true) AND skills HAS "support"`: true,
		`language == "en" OR language == "fr" AND vip == true`:       false,
		`NOT (language == "en")`:                                     true,
	} {
		e, err := parseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if e.holds(worker) != want {
			t.Errorf("%s: %t, want %t", text, !want, want)
		}
	}
}

func TestExpressionsThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		``:                      `it ends where a key, a text, a number or a list must follow`,
		`skills`:                `it ends where a comparison such as ==, HAS or IN must follow`,
		`skills HAS`:            `it ends where a key, a text, a number or a list must follow`,
		`skills HAS "sales`:     `the text that begins at character 12 has no end`,
		`skills LIKE "sales"`:   `at character 8 there is LIKE where a comparison such as ==, HAS or IN must follow`,
		`(1 == 1`:               `it ends where ) must follow`,
		`1 == 1)`:               `at character 7 there is ) where AND, OR or the end must follow`,
		`1 == 1 2 == 2`:         `at character 8 there is 2 where AND, OR or the end must follow`,
		`language IN ["ja" "en`: `at character 19 there is "en where , or ] must follow`,
		`AND == 1`:              `at character 1 there is AND where a key, a text, a number or a list must follow`,
		`first-name == "x"`:     `at character 6 there is -name where a comparison such as ==, HAS or IN must follow`,
		`a NOT b`:               `at character 7 there is b where a comparison such as ==, HAS or IN must follow`,
	} {
		if _, err := parseExpression(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
