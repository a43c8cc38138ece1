package panics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/todoku/todoku/panics"
)

func TestAPanicIsAnErrorWithItsStackAndWithoutItsValue(t *testing.T) {
	t.Parallel()
	const secret = "+12025550143"
	for name, f := range map[string]func() error{
		"a text":           func() error { panic("to " + secret) },
		"an error":         func() error { panic(fmt.Errorf("to %s", secret)) },
		"a runtime error":  func() error { var none any = secret; _ = none.(int); return nil },
		"an index":         func() error { s := []string{secret}; i := len(s); _ = s[i]; return nil },
		"deep in the code": func() error { return deep(1000, secret) },
	} {
		err := panics.Catch(f)
		failed, ok := errors.AsType[*panics.Error](err)
		if !ok {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), secret) || len(err.Error()) > 5000 {
			t.Errorf("%s: the error repeats the value, or has %d bytes", name, len(err.Error()))
		}
		if !strings.Contains(failed.Stack, "panics_test") {
			t.Errorf("%s: the stack does not lead here: %s", name, failed.Stack)
		}
	}
}

func deep(n int, secret string) error {
	if n == 0 {
		panic(secret)
	}
	return deep(n-1, secret)
}

func TestAPanicInAGroupSparesTheOthers(t *testing.T) {
	t.Parallel()
	g := panics.NewGroup()
	g.SetLimit(2)
	done := make(chan int, 10)
	for i := range 10 {
		g.Go(func() error {
			if i == 3 {
				panic("row 3")
			}
			done <- i
			return nil
		})
	}
	if _, ok := errors.AsType[*panics.Error](g.Wait()); !ok || len(done) != 9 {
		t.Errorf("%d of 9 others are done", len(done))
	}
}

func TestAPanicEndsTheContextOfItsGroup(t *testing.T) {
	t.Parallel()
	g, ctx := panics.WithContext(t.Context())
	g.Go(func() error { panic("x") })
	<-ctx.Done()
	if _, ok := errors.AsType[*panics.Error](g.Wait()); !ok {
		t.Error("no panic is returned")
	}
}
