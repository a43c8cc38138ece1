package simulator

import (
	"crypto/md5" // a stable name for a key's account, not a secret
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// account is what one account keeps: it comes into being when it is first named. The lock of its world guards it.
type account struct {
	sid        string
	token      string // of its latest caller; signs what the account is told of by itself
	workspaces collection[*workspace]
	flows      collection[*flow]
	numbers    map[string]*phoneNumber // by SID
}

// account returns the account that acts. The world is locked.
func (w *world) account(who caller) *account {
	a, ok := w.accounts[who.account]
	if !ok {
		a = &account{sid: who.account, numbers: make(map[string]*phoneNumber)}
		w.keepWorkspaces(a)
		keepFlows(a)
		w.accounts[who.account] = a
	}
	if who.token != "" {
		a.token = who.token
	}
	return a
}

// authenticateAnywhere finds the account of a request whose path does not name one: the user, or the account that
// an API key belongs to, which is always the same.
func (s *Simulator) authenticateAnywhere(r *http.Request) (caller, *failure) {
	user, _, _ := r.BasicAuth()
	if !isSID(user, "AC") {
		sum := md5.Sum([]byte(user))
		return s.authenticate(r, "AC"+hex.EncodeToString(sum[:]))
	}
	return s.authenticate(r, user)
}

// serveKept answers for what accounts keep at TaskRouter (/v1/Workspaces…) and Studio (/v2/Flows…).
func (s *Simulator) serveKept(w *world, rw http.ResponseWriter, r *http.Request) {
	who, failed := s.authenticateAnywhere(r)
	if failed != nil {
		refusal(failed).write(rw)
		return
	}
	f := readQueryOrForm(r)
	answer := w.keep(r.Method, r.URL.Path, f, who)
	w.pause(r.Context())
	answer.write(rw)
}

// readQueryOrForm reads what the request asks for: a list's query, or the form that it posts.
func readQueryOrForm(r *http.Request) *form {
	if r.Method == http.MethodPost {
		return readForm(r)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	f := &form{values: query}
	if err != nil {
		f.refuse(20001, "Bad request: the query cannot be read.")
	}
	return f
}

// keep decides on the request. A create meets the fault that waits for it, as those of messages and calls do.
func (w *world) keep(method, path string, f *form, who caller) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.failed != nil {
		return refusal(f.failed)
	}
	shelf, sid := w.account(who).find(path)
	if shelf == nil {
		return refusal(notFound(path))
	}
	_, validates := shelf.(flowValidation)
	creates := method == http.MethodPost && sid == "" && !validates
	if creates {
		if fault := w.takeFault(false); fault != nil {
			return fault.answer()
		}
	}
	answer := shelf.serve(method, sid, f, who)
	if answer.status >= 300 {
		return answer
	}
	if method != http.MethodGet && !validates {
		w.writes++
	}
	if creates {
		if fault := w.takeFault(true); fault != nil {
			return fault.answer()
		}
	}
	return answer
}

// find is the collection, and the SID of its member if any, that a path names.
func (a *account) find(path string) (shelf, string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	sid := ""
	if len(parts)%2 == 1 { // the version, then pairs of a collection and a SID
		sid = parts[len(parts)-1]
	} else {
		parts = append(parts, "")
	}
	switch {
	case len(parts) == 3 && parts[0] == "v2" && parts[1] == "Flows" && sid == "Validate":
		return flowValidation{}, ""
	case len(parts) == 3 && parts[0] == "v2" && parts[1] == "Flows":
		return &a.flows, sid
	case parts[0] != "v1" || parts[1] != "Workspaces":
		return nil, ""
	case len(parts) == 3:
		return &a.workspaces, sid
	}
	ws, ok := a.workspaces.get(parts[2])
	if !ok {
		return nil, ""
	}
	switch {
	case len(parts) == 5:
		switch parts[3] {
		case "Activities":
			return &ws.activities, sid
		case "TaskQueues":
			return &ws.queues, sid
		case "Workers":
			return &ws.workers, sid
		case "Workflows":
			return &ws.workflows, sid
		case "Tasks":
			return &ws.tasks, sid
		}
	case len(parts) == 7 && parts[3] == "Tasks" && parts[5] == "Reservations":
		if t, ok := ws.tasks.get(parts[4]); ok {
			return &t.reservations, sid
		}
	}
	return nil, ""
}
