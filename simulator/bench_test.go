package simulator_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/todoku/todoku/simulator"
)

// servesBenchmark is the variable under which this program is the simulator of BenchmarkCreates.
const servesBenchmark = "SIMULATOR_SERVES_BENCHMARK"

// serveBenchmark serves the listener that came as the first extra file until it is told to stop. With
// SIMULATOR_PROFILE=FILE it writes its CPU profile there.
func serveBenchmark() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if name := os.Getenv("SIMULATOR_PROFILE"); name != "" {
		if file, err := os.Create(name); err == nil {
			_ = pprof.StartCPUProfile(file)
			defer pprof.StopCPUProfile()
		}
	}
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err == nil {
		err = simulator.New(simulator.Options{}).Run(ctx, ln)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// startProcess runs a simulator in a process of its own. stop ends it and returns the processor time that it took.
func startProcess(b *testing.B) (url string, stop func() time.Duration) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), servesBenchmark+"=yes")
	process.ExtraFiles = []*os.File{file}
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		b.Fatal(err)
	}
	return "http://" + ln.Addr().String(), func() time.Duration {
		if err := process.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			b.Fatal(err)
		}
		return process.ProcessState.UserTime() + process.ProcessState.SystemTime()
	}
}

// BenchmarkCreates creates messages over HTTP and takes their two callbacks each. The simulator is a process of its
// own, so cpu-µs/create is what it alone costs: the create and both callbacks.
func BenchmarkCreates(b *testing.B) {
	var callbacks atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		callbacks.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer hook.Close()
	url, stop := startProcess(b)

	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	form := messageForm(map[string]string{"StatusCallback": hook.URL + "/status?id=n-1#rc=5&rp=all"}).Encode()
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request, _ := http.NewRequest("POST", url+"/2010-04-01/Accounts/"+testAccount+"/Messages.json",
				strings.NewReader(form))
			request.SetBasicAuth(testAccount, testToken)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			response, err := client.Do(request)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode != http.StatusCreated {
				b.Errorf("answered %d", response.StatusCode)
				return
			}
		}
	})
	for callbacks.Load() < 2*int64(b.N) {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
	b.ReportMetric(float64(stop().Microseconds())/float64(b.N), "cpu-µs/create")
}
