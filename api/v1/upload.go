package v1

import (
	"context"
	"errors"
	"mime"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/api/problem"
)

// uploadsAtOnce bounds how many uploads are read and written at the same time: each takes all cores.
const uploadsAtOnce = 2

// upload takes the body of a request, a file or a JSON object, and waits for its turn. Its error is an
// answer; without one, uploaded must follow.
func (a *API) upload(c *gin.Context) (isCSV bool, body *spool, err error) {
	ctx := c.Request.Context()
	if isCSV, err = uploadMedia(c.Request); err != nil {
		return isCSV, nil, err
	}
	place, err := a.receiving.enter(callerOf(ctx).keyID)
	if err != nil {
		return isCSV, nil, err
	}
	if body, err = newSpool(c.Writer, c.Request, place); err != nil {
		return isCSV, nil, a.uploadFailed(ctx, err)
	}
	if isCSV {
		_, params, _ := mime.ParseMediaType(c.GetHeader("Content-Type")) // uploadMedia has read it
		body.charset = params["charset"]
	}
	select {
	case a.uploads <- struct{}{}:
		return isCSV, body, nil
	case <-ctx.Done():
		return isCSV, nil, errors.Join(problem.Unavailable(), body.Close())
	}
}

// uploaded lets the next upload have its turn.
func (a *API) uploaded(body *spool) {
	<-a.uploads
	_ = body.Close() // it was read
}

func (a *API) uploadFailed(ctx context.Context, err error) error {
	if errors.As(err, new(*problem.Problem)) {
		return err
	}
	return a.fail(ctx, err)
}

// uploadMedia tells a file from a JSON object.
func uploadMedia(r *http.Request) (isCSV bool, err error) {
	if r.Header.Get("Content-Encoding") != "" {
		return false, problem.New(problem.UnsupportedMediaType, "the body is encoded: send it as it is, without Content-Encoding")
	}
	sent := r.Header.Get("Content-Type")
	media, _, _ := mime.ParseMediaType(sent)
	switch {
	case media == "text/csv":
		return true, nil
	case sent == "", isJSON(sent):
		return false, nil
	}
	return false, problem.New(problem.UnsupportedMediaType, "the body's type is not understood: send Content-Type: application/json, or text/csv for a file")
}
