package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// answer is a response that is ready to be written. It is decided before the latency has passed.
type answer struct {
	status       int
	contentType  string
	body         []byte
	retryAfter   int    // seconds; 0 sends no Retry-After
	authenticate bool   // send WWW-Authenticate
	server       string // who answers, where it is not Twilio
	drop         bool   // close the connection without a word
}

// jsonAnswer encodes body, one of this package's own types, which cannot fail.
func jsonAnswer(status int, body any) answer {
	var buf bytes.Buffer
	buf.Grow(1 << 10) // enough for one resource
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		panic(fmt.Sprintf("simulator: encode %T: %v", body, err))
	}
	return answer{status: status, contentType: "application/json", body: buf.Bytes()}
}

// write sends the answer and flushes it, so that the client has it before anything that follows from it.
func (a answer) write(w http.ResponseWriter) {
	if a.drop {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	if a.server != "" {
		header.Set("Server", a.server)
	} else {
		header.Set("Twilio-Request-Id", newSID("RQ"))
	}
	if a.contentType != "" {
		header.Set("Content-Type", a.contentType)
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	if a.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	if a.authenticate {
		header.Set("WWW-Authenticate", `Basic realm="Twilio API"`)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may have gone; what it asked for has happened all the same
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}
