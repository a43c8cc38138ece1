package v1

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"

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
}

// newSpool reads the whole body. Its error is a *problem.Problem where the body is at fault.
func newSpool(w http.ResponseWriter, r *http.Request) (*spool, error) {
	file, err := os.CreateTemp("", "todoku-upload-")
	if err != nil {
		return nil, fmt.Errorf("store the upload: %w", err)
	}
	s := &spool{File: file, hash: sha256.New()}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("store the upload: %w", err), s.Close())
	}
	body := &source{r: http.MaxBytesReader(w, r.Body, maxUpload)}
	n, err := io.Copy(io.MultiWriter(file, s.hash), body)
	switch {
	case body.err != nil:
		err = uploadProblem(body.err)
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

// source remembers what reading the body ended with, to tell it from what the disk says.
type source struct {
	r   io.Reader
	err error
}

func (u *source) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}

func uploadProblem(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return problem.Newf(problem.RequestTooLarge, "the body is over %d bytes, the most that is read at once: split it", maxUpload)
	}
	return problem.New(problem.UploadIncomplete, "the upload ended before its end: nothing was accepted; send it again")
}
