package simulator

import (
	"testing"
	"time"
)

func TestPoolRunsNoMoreThanItsLimit(t *testing.T) {
	p := &pool{limit: 2}
	started, release := make(chan int, 10), make(chan struct{})
	for i := range 10 {
		p.do(func() { started <- i; <-release })
	}
	<-started
	<-started
	select {
	case i := <-started:
		t.Errorf("job %d runs beside two others", i)
	case <-time.After(10 * time.Millisecond):
	}
	close(release)
	for range 8 {
		<-started
	}
	p.close()
	p.do(func() { t.Error("a closed pool runs a job") })
	if p.running != 0 {
		t.Errorf("%d goroutines are left", p.running)
	}
}
