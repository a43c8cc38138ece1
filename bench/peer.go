package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/devstack"
)

//go:embed peer
var peerFiles embed.FS

// peer is the BullMQ pipeline, running beside a rig: its own Redis, a database of its own in the
// rig's Postgres, the rig's simulator.
type peer struct {
	supervisor *devstack.Supervisor
	folder     string
	env        []string
}

// peerRun is what one run of the peer took, in seconds, and how much of it settled.
type peerRun struct {
	Queued  float64 `json:"queued_s"`
	Settled float64 `json:"settled_s"`
	Count   int     `json:"settled"`
}

// peerConnections is how many jobs the peer has in hand at a time, as it was given.
const peerConnections = 50

// startPeer installs what the peer needs and starts it, with so many jobs in hand at a time.
func startPeer(ctx context.Context, r *rig.Rig, connections int) (*peer, error) {
	redis, err := obtainRedis(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "todoku-peer-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the peer: %w", err)
	}
	p := &peer{folder: folder}
	if p.supervisor, err = devstack.NewSupervisor(devstack.SupervisorOptions{Dir: folder, Temporary: true}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := p.start(ctx, r, redis, connections); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *peer) start(ctx context.Context, r *rig.Rig, redis string, connections int) error {
	files, err := fs.Sub(peerFiles, "peer")
	if err != nil {
		return err
	}
	if err := os.CopyFS(p.folder, files); err != nil {
		return fmt.Errorf("copy the peer: %w", err)
	}
	say("npm install for the peer (about 10 s)")
	if err := inFolder(ctx, p.folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"); err != nil {
		return err
	}
	database, err := peerDatabase(ctx, r.DatabaseURL())
	if err != nil {
		return err
	}
	redisPort, webhookPort := freePort(), freePort()
	p.env = append(os.Environ(), "REDIS_PORT="+redisPort, "WEBHOOK_PORT="+webhookPort, "DATABASE_URL="+database, "TWILIO_API_URL="+r.Simulator.URL,
		"CONCURRENCY="+strconv.Itoa(connections))
	_, err = p.supervisor.Start(ctx, devstack.Process{
		Name: "redis", Path: redis, Dir: p.folder, Ready: devstack.TCPProbe("127.0.0.1:" + redisPort),
		Args: []string{"--bind", "127.0.0.1", "--port", redisPort, "--appendonly", "yes", "--save", ""},
	})
	if err != nil {
		return err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	_, err = p.supervisor.Start(ctx, devstack.Process{
		Name: "peer", Path: node, Args: []string{"peer.mjs", "work"}, Dir: p.folder, Env: p.env,
		Ready: devstack.TCPProbe("127.0.0.1:" + webhookPort),
	})
	return err
}

func (p *peer) stop() { p.supervisor.Stop() }

// peerMode is how the peer sends to many.
type peerMode string

const (
	peerEach peerMode = "each" // one job for each recipient
	peerBulk peerMode = "bulk" // one job that loops over all
)

// send has the peer send n messages.
func (p *peer) send(ctx context.Context, n int, mode peerMode) (peerRun, error) {
	var run peerRun
	var failure bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", "peer.mjs", "send", strconv.Itoa(n), string(mode))
	cmd.Dir, cmd.Env, cmd.Stderr = p.folder, p.env, &failure
	out, err := cmd.Output()
	if err != nil {
		return run, fmt.Errorf("run the peer: %w: %s", err, failure.String())
	}
	return run, json.Unmarshal(out, &run)
}

// obtainRedis finds redis-server, or installs it where that is possible.
func obtainRedis(ctx context.Context) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("the peer needs %s: install Node.js", program)
		}
	}
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path, nil
	}
	if apt, aptErr := exec.LookPath("apt-get"); aptErr == nil && os.Geteuid() == 0 {
		say("redis-server is not installed: installing it with apt-get (about 20 s; no server of the system is started)")
		if err := inFolder(ctx, os.TempDir(), apt, "install", "-y", "--no-install-recommends", "redis-server"); err != nil {
			return "", err
		}
		return exec.LookPath("redis-server")
	}
	return "", errors.New("the peer needs redis-server: install Redis (for example: apt-get install redis-server)")
}

// inFolder runs a program, whose output matters only when it fails.
func inFolder(ctx context.Context, folder, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1") // 1: packages start no service
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// peerDatabase makes a database for the peer beside ours and returns its URL.
func peerDatabase(ctx context.Context, ours string) (string, error) {
	db, err := pgx.Connect(ctx, ours)
	if err != nil {
		return "", fmt.Errorf("make the peer's database: %w", err)
	}
	defer db.Close(ctx)
	if _, err := db.Exec(ctx, `CREATE DATABASE peer`); err != nil {
		return "", fmt.Errorf("make the peer's database: %w", err)
	}
	u, err := url.Parse(ours)
	if err != nil {
		return "", errors.New("make the peer's database: its server's address cannot be read")
	}
	u.Path = "/peer"
	return u.String(), nil
}

// freePort is a port that nobody listens on now.
func freePort() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0" // whoever listens there says more
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}
