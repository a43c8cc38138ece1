package v1

import (
	"encoding/binary"
	"fmt"
	"os"
)

// twinKey is the same for rows with the same number and parameters, and no others.
type twinKey [16]byte

// twins remembers the keys of a batch's rows: in memory those of most batches, and those of a large one on
// disk, so that a million rows take no more memory than some thousands. It is not safe for concurrent use.
//
// The file has no name and is a hash table: a key stands in the bucket that its first bytes choose or,
// where that is full, in the first one after it that is not.
type twins struct {
	few    map[twinKey]struct{} // nil once they are in the file
	file   *os.File             // nil before
	bucket [twinBucket]byte
}

const (
	twinsInMemory = 1 << 15 // keys, which take a megabyte

	twinBucket  = 256     // bytes: 16 keys
	twinBuckets = 1 << 17 // room for twice as many keys as a batch has rows; the file is as large as what was written to it
)

func newTwins() *twins { return &twins{few: make(map[twinKey]struct{})} }

// Close forgets the keys.
func (t *twins) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// add reports whether the key was added before.
func (t *twins) add(key twinKey) (before bool, err error) {
	if t.few != nil {
		if _, before := t.few[key]; before {
			return true, nil
		}
		if len(t.few) < twinsInMemory {
			t.few[key] = struct{}{}
			return false, nil
		}
		err = t.moveToFile()
	}
	if err == nil {
		before, err = t.addToFile(key)
	}
	if err != nil {
		return false, fmt.Errorf("look for duplicates: %w", err)
	}
	return before, nil
}

func (t *twins) moveToFile() (err error) {
	if t.file, err = newUnnamedFile("todoku-twins-"); err != nil {
		return err
	}
	if err := t.file.Truncate(twinBuckets * twinBucket); err != nil {
		return err
	}
	for key := range t.few {
		if _, err := t.addToFile(key); err != nil {
			return err
		}
	}
	t.few = nil
	return nil
}

func (t *twins) addToFile(key twinKey) (before bool, err error) {
	for n := binary.LittleEndian.Uint32(key[:]); ; n++ {
		at := int64(n%twinBuckets) * twinBucket
		if _, err := t.file.ReadAt(t.bucket[:], at); err != nil {
			return false, err
		}
		for i := 0; i < twinBucket; i += len(key) {
			switch twinKey(t.bucket[i:]) {
			case key:
				return true, nil
			case twinKey{}: // nothing stands here or behind it
				_, err := t.file.WriteAt(key[:], at+int64(i))
				return false, err
			}
		}
	}
}
