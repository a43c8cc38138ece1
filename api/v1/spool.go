package v1

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/todoku/todoku/api/problem"
)

// maxUpload is how large an upload may be, in bytes.
const maxUpload = 512 << 20

// spool is a request's body on disk, in a file without a name: it is read before anything is written
// to the ledger, so an upload that is slow holds no transaction open, and one that is cut off has
// done nothing. It takes no memory, whatever its size.
type spool struct {
	*os.File
	hash    hash.Hash
	charset string // of a file, as its Content-Type names it; empty: not named
	place   *uploadPlace
}

// Close frees the disk.
func (s *spool) Close() error {
	defer s.place.leave()
	return s.File.Close()
}

// Write stores a part of the body, as far as there is room.
func (s *spool) Write(p []byte) (int, error) {
	if err := s.place.take(int64(len(p))); err != nil {
		return 0, err
	}
	s.hash.Write(p) // never fails
	return s.File.Write(p)
}

// CheckSpool reports whether uploads can be stored: without a folder that can be written, every upload would fail.
func CheckSpool() error {
	file, err := newUnnamedFile("todoku-upload-")
	if err == nil {
		_, err = file.Write(make([]byte, 4096))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("TMPDIR: uploads cannot be stored in %s: %w: mount a volume there, or set TMPDIR to a folder that can be written", os.TempDir(), err)
	}
	return nil
}

// newUnnamedFile makes a temporary file that disappears with the process, however that ends.
func newUnnamedFile(prefix string) (*os.File, error) {
	file, err := os.CreateTemp("", prefix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// uploadSilence is how long a client may send nothing of its upload.
const uploadSilence = 30 * time.Second

// newSpool reads the whole body. Its error is a *problem.Problem where the body is at fault, or there is no room.
func newSpool(w http.ResponseWriter, r *http.Request, place *uploadPlace) (*spool, error) {
	file, err := newUnnamedFile("todoku-upload-")
	if err != nil {
		place.leave()
		return nil, fmt.Errorf("store the upload: %w", err)
	}
	s := &spool{File: file, hash: sha256.New(), place: place}
	if r.ContentLength > maxUpload {
		return nil, errors.Join(uploadTooLarge(), s.Close())
	}
	timeouts := http.NewResponseController(w)
	body := &source{r: http.MaxBytesReader(w, r.Body, maxUpload), before: func() {
		_ = timeouts.SetReadDeadline(time.Now().Add(uploadSilence)) // what cannot be set stays as it is
	}}
	n, err := io.Copy(struct{ io.Writer }{s}, body)
	switch {
	case body.err != nil:
		err = uploadProblem(body.err)
	case errors.Is(err, syscall.ENOSPC):
		err = uploadsBusy("the disk for uploads is full")
	case errors.As(err, new(*problem.Problem)):
	case err != nil:
		err = fmt.Errorf("store the upload: %w", err)
	case n == 0:
		err = problem.New(problem.RequestEmpty, "the request has no body: send a JSON object, or a CSV file")
	default:
		return s, s.rewind()
	}
	return nil, errors.Join(err, s.Close())
}

func (s *spool) rewind() error {
	_, err := s.Seek(0, io.SeekStart)
	return err
}

// skipMark goes to the start of what is behind a byte order mark.
func (s *spool) skipMark() error {
	head := make([]byte, len(byteOrderMark))
	n, err := s.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start := int64(0)
	if bytes.Equal(head[:n], byteOrderMark) {
		start = int64(n)
	}
	_, err = s.Seek(start, io.SeekStart)
	return err
}

// source remembers what reading the body ended with, to tell it from what the disk says.
type source struct {
	r      io.Reader
	before func() // each read
	err    error
}

func (u *source) Read(p []byte) (int, error) {
	u.before()
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}

func uploadTooLarge() error {
	return problem.Newf(problem.RequestTooLarge, "the body is over %d bytes, the most that is read at once: split it", maxUpload)
}

func uploadProblem(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return uploadTooLarge()
	}
	return problem.New(problem.UploadIncomplete, "the upload ended before its end: nothing was accepted; send it again")
}
