package devstack

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// printTable shows where everything is and how to send a first SMS. Secrets stay in their files.
func (s *Stack) printTable() {
	r := s.Ready()
	rows := [][2]string{
		{"API", r.API + "  (its description: /docs)"},
		{"Temporal", r.Temporal},
		{"Temporal's Web UI", r.TemporalUI},
		{"Simulator", r.Simulator},
		{"Workers", strings.Join(s.workerURLs, " ")},
		{"Postgres", s.postgresForPeople()},
		{"API key", shortPath(s.apiKeyFile())},
		{"Logs", shortPath(filepath.Join(s.options.Dir, "log"))},
	}
	s.say("")
	for _, row := range rows {
		if row[1] != "" {
			s.say("  %-18s %s", row[0], row[1])
		}
	}
	to := "090-1234-5678"
	if r.Simulator == "" {
		to = "YOUR NUMBER" // the other may be somebody's
	}
	s.say(`
Send a first SMS:

  curl -s %s/api/v1/notifications \
    -H "Authorization: Bearer $(cat '%s')" \
    -H 'Content-Type: application/json' \
    -d '{"channel":"SMS","to":"%s","body":"Hello from Todoku"}'

Ctrl-C stops everything.`, r.API, shortPath(s.apiKeyFile()), to)
}

// postgresForPeople names the database without its password.
func (s *Stack) postgresForPeople() string {
	u, err := url.Parse(s.Ready().DatabaseURL)
	if s.postgres == nil || err != nil {
		return "as DATABASE_URL says"
	}
	u.User = url.User(u.User.Username())
	if s.options.ReadyFile == "" {
		return u.String()
	}
	return u.String() + "  (with its password: " + shortPath(s.options.ReadyFile) + ")"
}

// shortPath is a path as seen from the present folder, if it lies in that.
func shortPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return relative
}
