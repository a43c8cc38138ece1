package notify

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	fakeAccount = "AC0123456789abcdef0123456789ABCDEF"
	fakeMessage = "SM0123456789abcdef0123456789abcdef"
	fakeToken   = "fakeAuthToken0000000000000000000"
)

func TestTextThatMustBeScrubbed(t *testing.T) {
	s := newScrubber([]string{fakeToken, "p@ss/word+1", "p@ss", "", "abc"})
	tests := []struct{ text, want string }{
		// the given secrets
		{"token is " + fakeToken, "token is [redacted]"},
		{"x" + fakeToken + "y", "x[redacted]y"},
		{"p@ss/word+1 and p@ss", "[redacted] and [redacted]"},
		{"?pw=p%40ss%2Fword%2B1", "?pw=[redacted]"},

		// account SIDs
		{"account " + fakeAccount, "account AC[redacted]"},
		{"/2010-04-01/Accounts/" + fakeAccount + "/Messages.json", "/2010-04-01/Accounts/AC[redacted]/Messages.json"},
		{"sid_" + fakeAccount + "x", "sid_AC[redacted]x"},
		{"SK0123456789abcdef0123456789abcdef", "SK[redacted]"},

		// credentials by their place
		{"Authorization: Bearer abc.DEF-123", "Authorization: [redacted]"},
		{"sent Bearer abc.DEF-123 to it", "sent Bearer [redacted] to it"},
		{"sent bearer\tabcdefghijklmnopqrstuvwxyz", "sent bearer [redacted]"},
		{"Basic QUM6dG9rZW4=", "Basic [redacted]"},
		{"postgres://todoku:hunter2@127.0.0.1:5432/todoku?sslmode=disable", "postgres://todoku:[redacted]@127.0.0.1:5432/todoku?sslmode=disable"},
		{`parse "postgres://u:a/b@c@host/db": failed`, `parse "postgres://u:[redacted]@host/db": failed`},
		{"https://" + fakeAccount + ":t0k3n@example.com", "https://AC[redacted]:[redacted]@example.com"},
		{"host=db password=hunter2 user=todoku", "host=db password=[redacted] user=todoku"},
		{"host=db password='hunter 2' user=todoku", "host=db password=[redacted] user=todoku"},
		{`{"auth_token":"hunter2","n":1}`, `{"auth_token":"[redacted]","n":1}`},
		{`{"api_key": "a\"b", "n": 1}`, `{"api_key": "[redacted]", "n": 1}`},
		{`body "{\"password\":\"hunter2\"}"`, `body "{\"password\":"[redacted]"`},
		{"{AuthToken:hunter2 Port:1}", "{AuthToken:[redacted] Port:1}"},
		{"GET /x?api_key=hunter2&n=1", "GET /x?api_key=[redacted]&n=1"},

		// phone numbers
		{"sending to +819012345678", "sending to *********5678"},
		{"sending to +81 90-1234-5678 now", "sending to *******5678 now"},
		{"sending to +81 (0)90-1234-5678.", "sending to *********5678."},
		{"to +15005550006, from +1 (500) 555-0001", "to *******0006, from *******0001"},
		{"+65 6123 4567", "******4567"},
		{"090-1234-5678", "*******5678"},
		{"09012345678", "*******5678"},
		{"id 5 090-1234-5678 100 rows", "id 5 *******5678 100 rows"},
		{"電話は090-1234-5678です", "電話は*******5678です"},
		{"電話:０９０ー１２３４ー５６７８。", "電話:*******5678。"},
		{"(03) 1234-5678", "(******5678"},
		{"03(1234)5678", "******5678"},
		{"0120-123-456", "******3456"},
		{"0081 90 1234 5678", "**********5678"},
		{"010-81-90-1234-5678", "***********5678"},
		{"819012345678 is no SMS number", "********5678 is no SMS number"},
		{"two: 090-1234-5678,080-8765-4321", "two: *******5678,*******4321"},
		{"tel:+819012345678x12", "tel:********5678x12"},
		{"\u202a+81\u200b9012345678", "\u202a********5678"},

		// queries and forms
		{"GET /Messages.json?To=%2B819012345678&PageSize=50", "GET /Messages.json?To=*********5678&PageSize=50"},
		{"?From=%2B81%2090-1234-5678", "?From=*********5678"},
		{"to=090-1234-5678 from=ACCEPTED", "to=*******5678 from=ACCEPTED"},
		{"To=%2B819012345678&Body=%E4%BA%88%E7%B4%84&From=%2B15005550006", "To=*********5678&Body=[redacted]&From=********0006"},
		{`{"to":"+819012345678","body":"ご予約は\"明日\"です","n":1}`, `{"to":"********5678","body":"[redacted]","n":1}`},
		{`{"params":{"name":"山田"},"n":1}`, `{"params":"[redacted]","n":1}`},
		{"{To:+819012345678 Body:see you tomorrow From:x}", "{To:********5678 Body:[redacted]"},
		{`{Body:"see you" N:1}`, `{Body:[redacted] N:1}`},
		{"body=see you [tomorrow] To: x", "body=[redacted]"},
		{"map[body:see you tomorrow]", "map[body:[redacted]"},
	}
	for _, tt := range tests {
		if got := s.text(tt.text); collapseStars(got) != collapseStars(tt.want) {
			t.Errorf("%q became %q, want %q", tt.text, got, tt.want)
		}
	}
}

// collapseStars makes any number of stars one, for tables in which it is not the point how many digits
// were hidden.
func collapseStars(s string) string { return stars.ReplaceAllString(s, "*") }

var stars = regexp.MustCompile(`\*+`)

func TestTextThatMustSurvive(t *testing.T) {
	s := newScrubber([]string{"", "a", "abc", fakeToken})
	stamp := time.Date(2026, 9, 1, 9, 8, 7, 90123456, time.FixedZone("JST", 9*3600))
	for _, text := range []string{
		"", "Hello", "ご予約の確認", "abc",
		fakeMessage, "MM" + fakeMessage[2:], "CA" + fakeMessage[2:], "MG" + fakeMessage[2:],
		"from " + fakeMessage + " to PENDING",
		"550e8400-e29b-41d4-a716-446655440000",
		"01234567-0901-2345-6789-090123456789",
		"notification/01920000-0123-7456-8901-098765432101/r2",
		"run 0d9012345-x", "commit 0901234567ab", "trace 0af7651916cd43dd8448eb211c80319c",
		stamp.Format(time.RFC3339), stamp.Format(time.RFC3339Nano), stamp.UTC().Format(time.RFC3339Nano),
		stamp.Format(time.RFC1123Z), stamp.Format(time.DateTime), stamp.Format(time.DateOnly), stamp.String(),
		stamp.Format("01/02/2006 15:04:05"), stamp.Format("01-02-2006 15:04:05"), stamp.Format(time.StampNano),
		time.Now().String(), stamp.String() + " m=+8.902158697", stamp.String() + " m=+13.902158697", // with the monotonic clock
		"1732900000000", "rows 100000 of 1000000", "took 0.123456789s", "12.090123456 s", "0.5", "5m0.0901234567s",
		"00:00:10.090123456", "10.0.0.1:8080", "127.0.0.1", "0.0.0.0:7233", "192.168.0.1", "::1",
		"21610", "30003", "HTTP 503", "attempt 2 of 4", "batch/12/0", "v1.31.0", "go1.26.8", "+0900", "+09:00", "-0500",
		"0x0901234567", "id_09012345678", "0000000000000000001", "PA0901", "5,000", "1e+06", "12+34=46",
		"basic authentication", "the bearer token is missing", "Basic auth",
		"invalid token: unexpected EOF", "token count 5", "body is empty", "from ACCEPTED to SENDING", "from=ACCEPTED to=SENDING",
		"from=2026-11-29T16:11:00+09:00", "number=3", "text and body", `{"status":"SUCCESS","total":100000}`,
		"http://127.0.0.1:8233/namespaces/default/workflows", "postgres://127.0.0.1:5432/todoku",
		"key (id)=(5) already exists", "tokens_per_second=5",
	} {
		if got := s.text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestEveryWayToWriteANumberIsScrubbed(t *testing.T) {
	s := newScrubber(nil)
	for _, number := range []string{
		"090-1234-5678", "090 1234 5678", "09012345678", "(090)1234-5678", "090(1234)5678", "090.1234.5678", "０９０－１２３４－５６７８",
		"０９０ー１２３４ー５６７８", "０９０１２３４５６７８", "090‐1234‐5678", "090−1234−5678", "090　1234　5678", "090\u00a01234\u00a05678",
		"+819012345678", "+81 90 1234 5678", "+81-90-1234-5678", "＋８１９０１２３４５６７８", "+81(0)90-1234-5678", "(+81) 90-1234-5678",
		"00819012345678", "0081-90-1234-5678", "010-81-90-1234-5678", "819012345678", "%2B819012345678",
		"060-1234-5678", "0312345678", "03-1234-5678", "(03) 1234-5678", "（０３）１２３４－５６７８", "+81 3-1234-5678", "0120-123-456", "0800-123-1234",
		"050-1234-5678", "+12025550123", "+1 202-555-0123", "+44 20 7946 0000", "+15005550006",
	} {
		for _, around := range []string{"%s", "to %s!", "宛先：%sへ送信", `"%s"`, "[%s]", "to:%s", "to=%s", "(%s)", "7 %s 8", "%s\n%s", "a,%s,b", "<%s>", "%s: busy"} {
			text := strings.ReplaceAll(around, "%s", number)
			got := s.text(text)
			digits := 0
			for _, r := range got {
				if isDigit(foldNumberRune(r)) {
					digits++
				}
			}
			if digits > 4*strings.Count(around, "%s")+2 {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

func FuzzScrubbing(f *testing.F) {
	for _, seed := range []string{"", "+", "0", "090-1234-5678", "%2B", "(", "\xff", "Body:", `{"body":"`, "Bearer ", "postgres://a:b@c"} {
		f.Add(seed)
	}
	s := newScrubber([]string{fakeToken})
	f.Fuzz(func(t *testing.T, text string) {
		got := s.text(text + " " + fakeToken + " " + fakeAccount + " \n+819012345678 ")
		for _, leak := range []string{fakeToken, fakeAccount, "9012345678"} {
			if strings.Contains(got, leak) && !strings.Contains(text, leak) {
				t.Fatalf("%q leaks %q: %q", text, leak, got)
			}
		}
	})
}
