package simulator

import (
	"cmp"
	"net/url"
	"slices"
)

// params are what a callback tells, in the order of their names, and of their values where a name is repeated.
type params []param

type param struct{ name, value string }

// sorted makes params of values, whatever their order.
func sorted(values url.Values) params {
	list := make(params, 0, len(values))
	for name, repeated := range values {
		for _, value := range repeated {
			list = append(list, param{name, value})
		}
	}
	slices.SortFunc(list, func(a, b param) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	return list
}

// with returns the params and one more.
func (p params) with(name, value string) params {
	at, _ := slices.BinarySearchFunc(p, name, func(p param, name string) int { return cmp.Compare(p.name, name) })
	return slices.Insert(p, at, param{name, value})
}

// appendForm appends the params as a form or a query has them.
func (p params) appendForm(to []byte) []byte {
	for i, param := range p {
		if i > 0 {
			to = append(to, '&')
		}
		to = append(to, url.QueryEscape(param.name)...)
		to = append(to, '=')
		to = append(to, url.QueryEscape(param.value)...)
	}
	return to
}
