package simulator

import (
	"slices"
	"testing"
	"time"
)

func TestTimetableRunsWhatIsDueFirst(t *testing.T) {
	table := newTimetable()
	defer table.close()
	ran := make(chan string, 4)
	table.after(time.Hour, func() { ran <- "never" })
	table.after(30*time.Millisecond, func() { ran <- "last" })
	table.after(0, func() { ran <- "first" })
	table.after(0, func() { ran <- "second" })
	if got := []string{<-ran, <-ran, <-ran}; !slices.Equal(got, []string{"first", "second", "last"}) {
		t.Errorf("ran %v", got)
	}
}

func TestClosedTimetableRunsNothing(t *testing.T) {
	table := newTimetable()
	table.after(10*time.Millisecond, func() { t.Error("what was pending ran") })
	table.close()
	table.after(0, func() { t.Error("what came afterwards ran") })
	time.Sleep(20 * time.Millisecond)
}
