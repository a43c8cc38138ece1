package simulator

import (
	"fmt"
	"net/http"
	"strconv"
)

// failure is the body that Twilio answers an error with.
type failure struct {
	Code     int    `json:"code"`
	Message  string `json:"message"`
	MoreInfo string `json:"more_info"`
	Status   int    `json:"status"`
}

// badRequest is a failure with status 400, which is what Twilio answers almost every refusal with.
func badRequest(code int, format string, args ...any) *failure {
	return &failure{Code: code, Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}

func notFound(path string) *failure {
	return &failure{
		Code:    20404,
		Message: fmt.Sprintf("The requested resource %s was not found", path),
		Status:  http.StatusNotFound,
	}
}

func methodNotAllowed() *failure {
	return &failure{Code: 20004, Message: "Method not allowed", Status: http.StatusMethodNotAllowed}
}

// refusal is the answer that carries a failure.
func refusal(f *failure) answer {
	f.MoreInfo = "https://www.twilio.com/docs/errors/" + strconv.Itoa(f.Code)
	a := jsonAnswer(f.Status, f)
	if f.Status == http.StatusUnauthorized {
		a.authenticate = true
	}
	return a
}
