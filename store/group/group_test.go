package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// groups is a Write that takes its time and keeps what it was given.
type groups struct {
	takes time.Duration
	fails func(values []int) error

	mu      sync.Mutex
	written [][]int
	running int
	most    int
}

func (g *groups) write(_ context.Context, values ...int) ([]string, error) {
	g.mu.Lock()
	g.running++
	g.most = max(g.most, g.running)
	g.written = append(g.written, values)
	g.mu.Unlock()
	time.Sleep(g.takes)
	g.mu.Lock()
	g.running--
	g.mu.Unlock()
	if g.fails != nil {
		if err := g.fails(values); err != nil {
			return nil, err
		}
	}
	results := make([]string, len(values))
	for i, v := range values {
		results[i] = fmt.Sprint("did ", v)
	}
	return results, nil
}

var errOutage = errors.New("away")

func isOutage(err error) bool { return errors.Is(err, errOutage) }

// do writes values that arrive a moment apart, and returns how long each took.
func do(t *testing.T, w *Writer[int, string], apart time.Duration, values ...int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, len(values))
	var all sync.WaitGroup
	for i, v := range values {
		all.Go(func() {
			began := time.Now()
			result, err := w.Do(t.Context(), v)
			took[i] = time.Since(began)
			if want := fmt.Sprint("did ", v); err == nil && result != want {
				t.Errorf("%d was answered %q", v, result)
			}
		})
		time.Sleep(apart)
		synctest.Wait()
	}
	all.Wait()
	return took
}

func upTo(n int) []int {
	values := make([]int, n)
	for i := range values {
		values[i] = i
	}
	return values
}

func TestAValueAloneIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{takes: time.Millisecond}
		w := NewWriter(Patient, g.write, isOutage)
		for i, took := range do(t, w, 2*time.Millisecond, 1, 2, 3) {
			if took != time.Millisecond {
				t.Errorf("value %d took %v, want no longer than its write", i, took)
			}
		}
		if len(g.written) != 3 {
			t.Errorf("groups = %v, want one each", g.written)
		}
	})
}

func TestWhatComesWithinTheWindowIsWrittenTogetherInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{takes: 10 * time.Millisecond}
		w := NewWriter(Patient, g.write, isOutage)
		took := do(t, w, time.Millisecond, upTo(5)...)
		if want := [][]int{{0}, {1, 2, 3, 4}}; !slices.EqualFunc(g.written, want, slices.Equal[[]int]) {
			t.Errorf("groups = %v, want %v", g.written, want)
		}
		if took[1] != Patient+g.takes {
			t.Errorf("the first that waited took %v, want the window and its write", took[1])
		}
	})
}

func TestAFullGroupWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{takes: time.Second}
		w := NewWriter(Patient, g.write, isOutage)
		do(t, w, 0, upTo(1+size+1)...)
		var sizes []int
		for _, group := range g.written {
			sizes = append(sizes, len(group))
		}
		if want := []int{1, size, 1}; !slices.Equal(sizes, want) {
			t.Errorf("groups of %v, want %v", sizes, want)
		}
	})
}

func TestNoMoreGroupsAreWrittenAtOnceThanThereAreLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{takes: time.Second}
		w := NewWriter(Patient, g.write, isOutage)
		do(t, w, Patient/2, upTo(100)...)
		if g.most != lanes {
			t.Errorf("%d groups were written at once, want %d", g.most, lanes)
		}
		if got := slices.Concat(g.written...); len(got) != 100 || !slices.IsSorted(got) {
			t.Errorf("written: %v", g.written)
		}
	})
}

func TestABadValueSpoilsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errBad := errors.New("bad")
		g := &groups{takes: 10 * time.Millisecond, fails: func(values []int) error {
			if slices.Contains(values, 3) {
				return errBad
			}
			return nil
		}}
		w := NewWriter(Patient, g.write, isOutage)
		var all sync.WaitGroup
		for _, v := range upTo(6) {
			all.Go(func() {
				result, err := w.Do(t.Context(), v)
				if bad := v == 3; errors.Is(err, errBad) != bad || (result == "") != bad {
					t.Errorf("%d: %q, %v", v, result, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

func TestAnOutageIsEverybodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{takes: 10 * time.Millisecond, fails: func([]int) error { return errOutage }}
		w := NewWriter(Patient, g.write, isOutage)
		do(t, w, 0, upTo(6)...)
		if len(g.written) != 2 {
			t.Errorf("groups = %v, want no second try", g.written)
		}
	})
}

func TestAPanicIsAnErrorOfItsGroup(t *testing.T) {
	w := NewWriter(Patient, func(context.Context, ...int) ([]int, error) { panic("a text to +12025550143") }, isOutage)
	if _, err := w.Do(t.Context(), 1); err == nil {
		t.Error("it was answered as done")
	} else if strings.Contains(err.Error(), "+12025550143") {
		t.Errorf("the error has the panic's value: %v", err)
	}
	if _, err := w.Do(t.Context(), 1); err == nil {
		t.Error("it was answered as done the second time")
	}
}

func TestWhoeverGoesWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{takes: time.Hour}
		w := NewWriter(Patient, g.write, isOutage)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Do(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

func TestNobodyWaitsLongerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Patient, func(ctx context.Context, _ ...int) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) })
		for i, took := range do(t, w, 0, upTo(lanes*size+2)...) {
			if took != limit {
				t.Errorf("value %d took %v, want %v", i, took, limit)
			}
		}
	})
}
