package v1

import (
	"sync"

	"github.com/todoku/todoku/api/problem"
)

// What uploads may take while they are received and wait for their turn: so many at the same time, and so many bytes
// on disk. One key gets half of it, so that it cannot keep others out.
const (
	maxReceiving      = 64
	maxReceivingOfKey = maxReceiving / 2
	maxSpooled        = 2 << 30
	maxSpooledOfKey   = maxSpooled / 2
)

// uploadRoom counts uploads and their bytes. The zero value is ready, and safe for concurrent use.
type uploadRoom struct {
	mu    sync.Mutex
	all   roomTaken
	byKey map[int64]*roomTaken
}

type roomTaken struct {
	uploads int
	bytes   int64
}

// enter begins an upload, or refuses it.
func (r *uploadRoom) enter(key int64) (*uploadPlace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = make(map[int64]*roomTaken)
	}
	own := r.byKey[key]
	if own == nil {
		own = &roomTaken{}
	}
	if r.all.uploads >= maxReceiving || own.uploads >= maxReceivingOfKey {
		return nil, uploadsBusy("too many uploads are being received")
	}
	r.byKey[key] = own
	r.all.uploads++
	own.uploads++
	return &uploadPlace{room: r, key: key, own: own}, nil
}

// uploadPlace is what one upload takes.
type uploadPlace struct {
	room  *uploadRoom
	key   int64
	own   *roomTaken
	bytes int64
}

// take makes room for bytes on disk.
func (p *uploadPlace) take(n int64) error {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	if p.room.all.bytes+n > maxSpooled || p.own.bytes+n > maxSpooledOfKey {
		return uploadsBusy("the uploads that are being received are too large together")
	}
	p.bytes += n
	p.own.bytes += n
	p.room.all.bytes += n
	return nil
}

// leave gives back what the upload took.
func (p *uploadPlace) leave() {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.room.all.bytes -= p.bytes
	p.own.bytes -= p.bytes
	p.room.all.uploads--
	p.own.uploads--
	if p.own.uploads == 0 {
		delete(p.room.byKey, p.key)
	}
}

func uploadsBusy(why string) *problem.Problem {
	return problem.Newf(problem.UploadsBusy, "%s: send this one again after the seconds in Retry-After", why).WithHeader("Retry-After", "10")
}
