package notify

import (
	"fmt"
	"strconv"
	"strings"
)

// cronField is one of the five fields of a cron expression.
type cronField struct {
	name     string
	min, max int
	names    []string // of the values from min on, where they have names
}

var cronFields = []cronField{
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of the month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{name: "day of the week", max: 7, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}, // 7 is Sunday too
}

// set holds small numbers.
type set uint64

func (s set) has(n int) bool { return s&(1<<n) != 0 }

// numbers lists them, the smallest first.
func (s set) numbers() []int {
	var all []int
	for n := range 64 {
		if s.has(n) {
			all = append(all, n)
		}
	}
	return all
}

func setOf(numbers ...int) (s set) {
	for _, n := range numbers {
		s |= 1 << n
	}
	return s
}

func setFrom(first, last, step int) (s set) {
	for n := first; n <= last; n += step {
		s |= 1 << n
	}
	return s
}

// longestCron leaves room for every value of every field, written out.
const longestCron = 500

// parseCron reads the five fields of cron(5): minute, hour, day of the month, month, day of the week,
// with lists, ranges, steps and English names. As there, where both days are restricted a day fits
// when one of them does. Nothing else is understood: no seconds, no @daily, no L, W, # or ?.
func parseCron(expression string) (*rule, error) {
	if len(expression) > longestCron {
		return nil, fmt.Errorf("the cron expression has more than %d characters: write ranges and steps", longestCron)
	}
	texts := strings.Fields(expression)
	if len(texts) != len(cronFields) {
		return nil, fmt.Errorf("a cron expression has five fields (minute, hour, day of the month, month, day of the week) and this one has %d", len(texts))
	}
	sets := make([]set, len(texts))
	for i, text := range texts {
		var err error
		if sets[i], err = cronFields[i].parse(text); err != nil {
			return nil, err
		}
	}
	r := &rule{seconds: setOf(0), minutes: sets[0], hours: sets[1], monthDays: sets[2], months: sets[3], weekdays: sets[4]}
	if r.weekdays.has(7) {
		r.weekdays = r.weekdays&^setOf(7) | setOf(0)
	}
	r.eitherDay = !strings.HasPrefix(texts[2], "*") && !strings.HasPrefix(texts[4], "*")
	return r, nil
}

func (f cronField) parse(text string) (all set, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, hasStep := strings.Cut(part, "/")
		first, last, step := f.min, f.max, 1
		if span != "*" {
			from, to, isRange := strings.Cut(span, "-")
			if first, err = f.value(from); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if last, err = f.value(to); err != nil {
					return 0, err
				}
			case !hasStep:
				last = first
			}
		}
		if hasStep {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.max || strings.HasPrefix(stepText, "+") {
				return 0, fmt.Errorf("the step of the %s is none: write a number from 1 to %d after the /", f.name, f.max)
			}
		}
		if first > last {
			return 0, fmt.Errorf("the %s has a range that ends before it begins: write the smaller one first", f.name)
		}
		all |= setFrom(first, last, step)
	}
	return all, nil
}

func (f cronField) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("the %s cannot be read: write * or numbers from %d to %d, as in 1,3 or 1-5 or */2", f.name, f.min, f.max)
	}
	return n, nil
}
