package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/todoku/todoku/api/apitest"
)

// TestRefusalReachesAClientThatWritesBeforeItReads sends 20 MB that nobody wants, as Python's requests does: all of it
// before the first look at an answer.
func TestRefusalReachesAClientThatWritesBeforeItReads(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	const size = 20 << 20
	for name, test := range map[string]struct {
		line, key, mediaType string
		status               int
	}{
		"a wrong key":                    {"POST /api/v1/batches", "wrong", "text/csv", 401},
		"no such path":                   {"POST /api/v1/nothing", apitest.Key, "text/csv", 404},
		"no such method":                 {"PUT /api/v1/batches", apitest.Key, "text/csv", 405},
		"too large":                      {"POST /api/v1/notifications", apitest.Key, "application/json", 413},
		"another type":                   {"POST /api/v1/batches", apitest.Key, "image/png", 415},
		"a parameter that is wrong":      {"POST /api/v1/lists/1/members?mode=shuffle", apitest.Key, "text/csv", 422},
		"a callback without a signature": {"POST /api/twilio/webhook/sms-status", apitest.Key, "application/x-www-form-urlencoded", 403},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", name, chunked), func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				length := fmt.Sprintf("Content-Length: %d", size)
				if chunked {
					length = "Transfer-Encoding: chunked"
				}
				fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: todoku\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n%s\r\n\r\n", test.line, test.key, test.mediaType, length)
				part := bytes.Repeat([]byte("9"), 1<<20)
				for range size / len(part) {
					if chunked {
						_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(part), part)
					} else {
						_, err = conn.Write(part)
					}
					if err != nil {
						t.Fatalf("while it writes: %v", err)
					}
				}
				if chunked {
					fmt.Fprint(conn, "0\r\n\r\n")
				}
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				defer response.Body.Close()
				if text, err := io.ReadAll(response.Body); response.StatusCode != test.status || err != nil || !bytes.Contains(text, []byte(`"code"`)) {
					t.Errorf("answer = %d, %v: %s", response.StatusCode, err, text)
				}
			})
		}
	}
}

func TestClientThatNeverStopsWritingIsCutOff(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /api/v1/batches HTTP/1.1\r\nHost: todoku\r\nTransfer-Encoding: chunked\r\n\r\n")
	answer := bufio.NewReader(conn)
	part := []byte(fmt.Sprintf("%x\r\n%s\r\n", 1<<20, bytes.Repeat([]byte("9"), 1<<20)))
	for written := 0; ; written++ {
		if _, err := conn.Write(part); err != nil {
			break // as it should
		}
		if written > 1000 {
			t.Fatal("a gigabyte was taken")
		}
	}
	// What the client has not read when the connection ends may be lost; where it is there, it is the refusal.
	if response, err := http.ReadResponse(answer, nil); err == nil && response.StatusCode != http.StatusUnauthorized {
		t.Errorf("answer = %d", response.StatusCode)
	}
}
