package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/api/problem"
)

var (
	requestsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "todoku_http_requests_total",
		Help: "HTTP requests answered.",
	}, []string{"method", "route", "status"})
	requestSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "todoku_http_request_duration_seconds",
		Help:    "How long HTTP requests took.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route"})
)

const requestIDHeader = "X-Request-Id"

// requestID is what a caller may name a request.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// identify gives each request a name to find it by in the log: the caller's, or a new one.
func identify(c *gin.Context) {
	id := c.GetHeader(requestIDHeader)
	if id == "" || !requestID.MatchString(id) {
		id = uuid.NewString()
	}
	c.Header(requestIDHeader, id)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "no-store")
}

// requestIDOf is the name of the request.
func requestIDOf(c *gin.Context) string { return c.Writer.Header().Get(requestIDHeader) }

// clientClosed counts and logs a request whose client hung up before there was an answer. Nothing was
// unavailable. The number is nginx's.
const clientClosed = 499

// observe counts and logs each request by its route. Paths, queries and bodies hold ids and numbers,
// so they stay out.
func observe(logger *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, arrived := time.Now(), c.Request.Context()
		c.Next()
		took, method, route, status := time.Since(start), knownMethod(c.Request.Method), c.FullPath(), c.Writer.Status()
		if status == http.StatusServiceUnavailable && errors.Is(arrived.Err(), context.Canceled) {
			status = clientClosed
		}
		if route == "" {
			route = "unmatched"
		}
		requestsTotal.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
		requestSeconds.WithLabelValues(method, route).Observe(took.Seconds())
		level := requestLevel(route, status)
		if !logger.Enabled(c.Request.Context(), level) {
			return
		}
		logger.LogAttrs(c.Request.Context(), level, "request",
			slog.String("method", method), slog.String("route", route), slog.Int("status", status),
			slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.String("request_id", requestIDOf(c)))
	}
}

// requestLevel keeps what is asked all the time, and went well, out of the usual log.
func requestLevel(route string, status int) slog.Level {
	if status >= http.StatusInternalServerError {
		return slog.LevelError
	}
	often := route == "/healthz" || route == "/readyz" || route == "/metrics" || strings.HasPrefix(route, "/api/twilio/webhook/")
	if often && status < http.StatusBadRequest {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// knownMethod bounds a metric's label.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// endpoint is what a request asks for.
type endpoint struct{ method, route string }

// writeMargin is how long after its limit a request may write its answer.
const writeMargin = 10 * time.Second

// unlimited is the limit of a route whose work has one of its own.
const unlimited = 0

// limits are those of routes that may take longer than others. To cancel or to pause waits for
// claims to end, which takes at most 15 s; streams have limits of their own. Of status callbacks there
// are thousands in a second, and each would need a timer; they wait for their group alone.
var limits = map[endpoint]time.Duration{
	{"POST", "/api/twilio/webhook/sms-status"}:   unlimited,
	{"POST", "/api/twilio/webhook/call-status"}:  unlimited,
	{"POST", "/api/v1/notifications/:id/cancel"}: 18 * time.Second,
	{"POST", "/api/v1/batches/:id/cancel"}:       18 * time.Second,
	{"POST", "/api/v1/batches/:id/pause"}:        18 * time.Second,
	{"POST", "/api/v1/batches"}:                  time.Hour,
	{"POST", "/api/v1/schedules/:id/trigger"}:    time.Hour, // it writes a batch as well
	{"GET", "/api/v1/batches/:id/progress"}:      time.Hour,
	{"POST", "/api/v1/lists"}:                    time.Hour,
	{"DELETE", "/api/v1/lists/:id"}:              time.Minute,
	{"POST", "/api/v1/lists/:id/members"}:        time.Hour,
	{"GET", "/api/v1/lists/:id/members.csv"}:     time.Hour,
	{"GET", "/api/v1/batches/:id/results.csv"}:   time.Hour,
}

// limit ends the request's context when it takes too long.
func limit(c *gin.Context) {
	most, ok := limits[endpoint{c.Request.Method, c.FullPath()}]
	switch {
	case !ok:
		most = requestLimit
	case most == unlimited:
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), most)
	defer cancel()
	if most > requestLimit { // the server's own time-out would end it sooner
		_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(most + writeMargin))
	}
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// wholeQuery lets a request pass whose query can be read to its end. net/url leaves out the parameters
// that it cannot read, and without its dry_run or its send_at a request would be another one.
func wholeQuery(c *gin.Context) {
	if _, err := url.ParseQuery(c.Request.URL.RawQuery); err != nil {
		problem.Write(c.Writer, problem.New(problem.ParameterInvalid, "a parameter of the query cannot be read: put & between parameters, and write % as %25 and ; as %3B"))
		c.Abort()
	}
}

// recoverPanics answers 500 without a word of what happened; the log has it.
func recoverPanics(logger *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			logger.ErrorContext(c.Request.Context(), "panic while answering a request",
				"panic", fmt.Sprint(cause), "route", c.FullPath(), "request_id", requestIDOf(c), "stack", string(debug.Stack()))
			if !c.Writer.Written() {
				problem.Write(c.Writer, problem.New(problem.Internal, "something went wrong on our side: try again, and if it stays, tell the operator the X-Request-Id"))
			}
			c.Abort()
		}()
		c.Next()
	}
}
