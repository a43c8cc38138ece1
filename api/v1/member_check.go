package v1

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// longestParam is how long a parameter's value may be, in characters: as long as an SMS.
const longestParam = notify.MaxSMSCharacters

// memberColumns are the columns of a list's file that are no parameters.
var memberColumns = []string{"to", "timezone", "locale"}

// memberCheck decides whether somebody can be a member of a list. It is safe for concurrent use.
type memberCheck struct {
	region      string
	countries   []string
	numberKinds []notify.PhoneKind // that are allowed though they charge the caller
	hashKey     []byte
	zones       sync.Map // those that were found to exist
}

func (a *API) memberCheck() *memberCheck {
	return &memberCheck{region: a.Settings.DefaultRegion, countries: a.Settings.AllowedCountries, numberKinds: a.Settings.AllowedNumberKinds,
		hashKey: []byte(a.Settings.PhoneHashKey)}
}

// check looks at one row of many. What is wrong with it names its field, but for the number: as in a
// batch, that speaks for itself.
func (c *memberCheck) check(r notify.Recipient) checkedRow[store.NewMember] {
	member, wrong := c.read(r)
	if len(wrong) == 0 {
		return checkedRow[store.NewMember]{row: member}
	}
	first := wrong[0]
	if first.Pointer != "/to" {
		first.Detail = strings.TrimPrefix(first.Pointer, "/") + ": " + first.Detail
	}
	return rejectedRow[store.NewMember](r.Row, string(first.Code), first.Detail)
}

// read makes a member, or says everything that is wrong with it. A landline is right: it can be called.
func (c *memberCheck) read(r notify.Recipient) (member store.NewMember, wrong problem.Details) {
	number, err := notify.ParsePhoneNumber(r.To, c.region)
	if err == nil {
		err = number.Accepts(notify.Call, c.countries, c.numberKinds...)
	}
	var invalid *notify.InvalidNumberError
	if errors.As(err, &invalid) {
		wrong.Add("/to", problem.Code(invalid.Code), invalid.Error())
	}
	member = store.NewMember{Row: r.Row, To: number, ToHash: number.Hash(c.hashKey), TailHash: number.TailHash(c.hashKey)}
	member.Params = readParams(&wrong, r.Params)
	member.Timezone, member.Locale = c.readTimezone(&wrong, r.Timezone), readLocale(&wrong, r.Locale)
	key := rowKey(string(member.ToHash), member.Params)
	member.Key = key[:]
	return member, wrong
}

// readParams gives parameters the names that placeholders have.
func readParams(wrong *problem.Details, typed map[string]string) map[string]string {
	params := make(map[string]string, len(typed))
	if len(typed) > notify.MaxCSVColumns {
		wrong.Add("/params", problem.ParamNameInvalid, fmt.Sprintf("there are %d parameters, more than %d: leave out those that no template needs", len(typed), notify.MaxCSVColumns))
		return params
	}
	for _, given := range slices.Sorted(maps.Keys(typed)) {
		name, ok := notify.ParamName(given)
		_, twice := params[name]
		switch value := typed[given]; {
		case slices.ContainsFunc(memberColumns, func(column string) bool { return strings.EqualFold(name, column) }):
			wrong.Add(pointerTo("/params", given), problem.ParamNameInvalid, "a list's file has another column of this name: choose another name")
		case !ok || twice:
			wrong.Add(pointerTo("/params", given), problem.ParamNameInvalid, "no placeholder can have this name, or another parameter has it: use letters, digits and underscores")
		case utf8.RuneCountInString(value) > longestParam:
			wrong.Add(pointerTo("/params", given), problem.ParamInvalid, fmt.Sprintf("the value has more than %d characters: shorten it", longestParam))
		case strings.ContainsFunc(value, isHidden):
			wrong.Add(pointerTo("/params", given), problem.ParamInvalid, "the value has control characters: remove them")
		default:
			params[name] = value
		}
	}
	return params
}

func (c *memberCheck) readTimezone(wrong *problem.Details, name string) *string {
	if name == "" {
		return nil
	}
	if _, found := c.zones.Load(name); found {
		return &name
	}
	if _, err := notify.LoadZone(name); err != nil {
		wrong.Add("/timezone", problem.TimezoneUnknown, err.Error())
		return nil
	}
	c.zones.Store(name, true)
	return &name
}

func readLocale(wrong *problem.Details, typed string) *string {
	if typed == "" {
		return nil
	}
	tag, err := language.Parse(typed)
	if err != nil {
		wrong.Add("/locale", problem.LocaleUnknown, "it is no BCP 47 tag: write one such as ja or en-US")
		return nil
	}
	return known(tag.String())
}
