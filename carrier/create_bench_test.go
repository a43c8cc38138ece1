package carrier

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

// BenchmarkCreate makes SMS, 32 at once, at a server that answers as Twilio does and costs next to
// nothing. The processor time is that of both.
func BenchmarkCreate(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerCreates(conn)
		}
	}()
	c, err := New(Options{AccountSID: testAccount, AuthToken: testToken, APIURL: "http://" + listener.Addr().String(), UserAgent: "todoku/bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	request := Create{
		Channel: notify.SMS, To: testTo, From: testFrom, StatusCallback: callbackURL, Deadline: time.Now().Add(time.Hour),
		Body: "ご予約の前日になりました。明日のご来院をお待ちしております。",
	}
	b.SetParallelism(16)
	b.ReportAllocs()
	before := processorTime()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Create(b.Context(), request); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "µs-cpu/op")
}

func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// answerCreates answers each request on the connection as Twilio answers a create.
func answerCreates(conn net.Conn) {
	defer conn.Close()
	const body = `{"account_sid":"` + testAccount + `","api_version":"2010-04-01","body":"\u3054\u4e88\u7d04\u306e\u524d\u65e5\u306b\u306a\u308a\u307e\u3057\u305f\u3002\u660e\u65e5\u306e\u3054\u6765\u9662\u3092\u304a\u5f85\u3061\u3057\u3066\u304a\u308a\u307e\u3059\u3002",` +
		`"date_created":"Thu, 24 Aug 2023 05:01:45 +0000","date_sent":null,"date_updated":"Thu, 24 Aug 2023 05:01:45 +0000","direction":"outbound-api","error_code":null,"error_message":null,` +
		`"from":"` + testFrom + `","messaging_service_sid":null,"num_media":"0","num_segments":"1","price":null,"price_unit":"USD","sid":"` + testMessage + `","status":"queued",` +
		`"subresource_uris":{"media":"/2010-04-01/Accounts/` + testAccount + `/Messages/` + testMessage + `/Media.json"},"to":"` + testTo + `","uri":"/2010-04-01/Accounts/` + testAccount + `/Messages/` + testMessage + `.json"}`
	answer := fmt.Appendf(nil, "HTTP/1.1 201 Created\r\nContent-Type: application/json;charset=utf-8\r\nTwilio-Request-Id: RQ00000000000000000000000000000001\r\nDate: Thu, 24 Aug 2023 05:01:45 GMT\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	r := bufio.NewReader(conn)
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
				length, _ = strconv.Atoi(strings.TrimSpace(value))
			}
		}
		if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}
