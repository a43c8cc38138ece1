package v1

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// twinKey is the same for rows with the same number and parameters, and no others.
type twinKey [16]byte

// twins remembers the keys of a batch's rows on disk, in a file without a name: a hash table, in which a
// key stands in the bucket that its first bytes choose or, where that is full, in the first one after
// it that is not. So a million rows take no more memory than one. It is not safe for concurrent use.
type twins struct {
	file   *os.File
	bucket [twinBucket]byte
}

const (
	twinBucket  = 256     // bytes: 16 keys
	twinBuckets = 1 << 17 // room for twice as many keys as a batch has rows; the file is as large as what was written to it
)

func newTwins() (*twins, error) {
	file, err := os.CreateTemp("", "todoku-twins-")
	if err != nil {
		return nil, fmt.Errorf("look for duplicates: %w", err)
	}
	t := &twins{file: file}
	if err := errors.Join(os.Remove(file.Name()), file.Truncate(twinBuckets*twinBucket)); err != nil {
		return nil, errors.Join(fmt.Errorf("look for duplicates: %w", err), t.Close())
	}
	return t, nil
}

// Close forgets the keys.
func (t *twins) Close() error { return t.file.Close() }

// add reports whether the key was added before.
func (t *twins) add(key twinKey) (before bool, err error) {
	for n := binary.LittleEndian.Uint32(key[:]); ; n++ {
		at := int64(n%twinBuckets) * twinBucket
		if _, err := t.file.ReadAt(t.bucket[:], at); err != nil {
			return false, fmt.Errorf("look for duplicates: %w", err)
		}
		for i := 0; i < twinBucket; i += len(key) {
			switch twinKey(t.bucket[i:]) {
			case key:
				return true, nil
			case twinKey{}: // nothing stands here or behind it
				if _, err := t.file.WriteAt(key[:], at+int64(i)); err != nil {
					return false, fmt.Errorf("look for duplicates: %w", err)
				}
				return false, nil
			}
		}
	}
}
