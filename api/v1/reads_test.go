package v1

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

func TestReadersOfOneBatchShareAStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var statements atomic.Int64
		reads := &batchReads{read: func(context.Context, uuid.UUID) (store.Batch, error) {
			statements.Add(1)
			time.Sleep(5 * time.Millisecond)
			return store.Batch{}, nil
		}}
		id := uuid.New()
		var readers sync.WaitGroup
		for range 2000 {
			readers.Go(func() {
				for range 10 { // ten seconds
					if _, err := reads.recent(t.Context(), id, progressInterval*9/10); err != nil {
						t.Error(err)
					}
					time.Sleep(progressInterval)
				}
			})
		}
		readers.Wait()
		if n := statements.Load(); n > 11 {
			t.Errorf("2,000 readers of progress made %d statements in 10 s, want one a second", n)
		}
	})
}

func TestReadThatBeganBeforeIsNotAnAnswerToALaterRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		var statements atomic.Int64
		reads := &batchReads{read: func(context.Context, uuid.UUID) (store.Batch, error) {
			statements.Add(1)
			seen := total.Load()
			time.Sleep(time.Second)
			return store.Batch{Total: int32(seen)}, nil
		}}
		id := uuid.New()
		go func() { _, _ = reads.fresh(t.Context(), id) }()
		synctest.Wait()
		total.Store(7) // a change that is committed while the first statement runs
		var readers sync.WaitGroup
		for range 100 {
			readers.Go(func() {
				if b, err := reads.fresh(t.Context(), id); err != nil || b.Total != 7 {
					t.Errorf("a later request reads %d, %v", b.Total, err)
				}
			})
		}
		readers.Wait()
		if n := statements.Load(); n != 2 {
			t.Errorf("%d statements, want 2", n)
		}
	})
}

func TestOneKeyLeavesRoomForUploadsOfOthers(t *testing.T) {
	t.Parallel()
	var room uploadRoom
	var places []*uploadPlace
	for {
		place, err := room.enter(1)
		if err != nil {
			if refusal, ok := errors.AsType[*problem.Problem](err); !ok || refusal.Code != problem.UploadsBusy {
				t.Errorf("the refusal is %v", err)
			}
			break
		}
		places = append(places, place)
	}
	if len(places) != maxReceivingOfKey {
		t.Errorf("one key has %d uploads at the same time", len(places))
	}
	if err := errors.Join(places[0].take(maxSpooledOfKey), places[1].take(1)); err == nil {
		t.Error("one key takes more than its part of the disk")
	}
	other, err := room.enter(2)
	if err == nil {
		err = other.take(maxUpload)
	}
	if err != nil {
		t.Errorf("another key is kept out: %v", err)
	}
	for _, place := range append(places, other) {
		place.leave()
	}
	if room.all != (roomTaken{}) || len(room.byKey) != 0 {
		t.Errorf("after the last upload %+v is still taken", room.all)
	}
}

func TestReadThatFindsNoPlaceIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		places := make(chan struct{}, 1)
		if err := takeTurn(t.Context(), places); err != nil {
			t.Fatal(err)
		}
		refusal, ok := errors.AsType[*problem.Problem](takeTurn(t.Context(), places))
		if !ok || refusal.Code != problem.ReadsBusy {
			t.Errorf("the refusal is %v", refusal)
		}
	})
}
