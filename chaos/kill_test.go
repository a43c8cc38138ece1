package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/simulator"
)

// killEvery is the mean pause between two kills.
const killEvery = 5 * time.Second

// TestRandomKills kills workers, the API, Temporal and Postgres under a stream of singles.
func TestRandomKills(t *testing.T) {
	seed := cmp.Or(*seed, uint64(time.Now().UnixNano()))
	t.Logf("seed %d: go test -count=1 -v ./chaos -run TestRandomKills -kills %d -singles %d -seed %d", seed, *kills, *singles, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := start(t, nil)
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) { b.LatencyMS = 30 }); err != nil {
		t.Fatal(err)
	}

	streaming := time.Duration(*kills+1) * killEvery
	var accepted []rig.Accepted
	var both sync.WaitGroup
	both.Go(func() { accepted = stream(t, r, *singles, streaming) })
	both.Go(func() { killAtRandom(t, r, random, *kills) })
	both.Wait()
	if len(accepted) != *singles {
		t.Errorf("%d of %d notifications were accepted, though the client retried as told", len(accepted), *singles)
	}
	audit(t, r, accepted)
}

// killAtRandom kills n processes, each part in its turn of a shuffled round, and never one that has
// not been replaced since its last turn.
func killAtRandom(t *testing.T, r *rig.Rig, random *rand.Rand, n int) {
	began := time.Now()
	dead := map[int]bool{}
	var round []rig.Part
	for range n {
		time.Sleep(killEvery/2 + time.Duration(random.Int64N(int64(killEvery))))
		if len(round) == 0 {
			round = []rig.Part{rig.PartWorkers, rig.PartAPI, rig.PartTemporal, rig.PartPostgres}
			random.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		part := round[0]
		round = round[1:]
		choice := random.Int()
		var victim int
		await(t, time.Minute, fmt.Sprintf("a process of %s lives", part), func(context.Context) (bool, error) {
			pids := r.PIDs(part)
			victim = pids[choice%len(pids)]
			return victim != 0 && !dead[victim], nil
		})
		dead[victim] = true
		r.Kill(victim)
		t.Logf("%5.1f s: killed %s, process %d", time.Since(began).Seconds(), part, victim)
	}
}

// stream sends n singles, one in ten of them a call, evenly spread over a time, by a client that
// retries as told, and returns what was accepted.
func stream(t *testing.T, r *rig.Rig, n int, over time.Duration) []rig.Accepted {
	ctx, cancel := context.WithTimeout(t.Context(), over+2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var all []rig.Accepted
	var sending sync.WaitGroup
	began := time.Now()
	for i := range n {
		time.Sleep(time.Until(began.Add(over * time.Duration(i) / time.Duration(n))))
		sending.Go(func() {
			accepted, err := r.API.Send(ctx, single(i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Logf("single %d was not accepted: %v", i, err)
				return
			}
			all = append(all, accepted)
		})
	}
	sending.Wait()
	slices.SortFunc(all, func(a, b rig.Accepted) int { return a.BeganAt.Compare(b.BeganAt) })
	return all
}

// single is the i-th notification of a test, to a number of its own.
func single(i int) rig.Request {
	channel := "SMS"
	if i%10 == 9 {
		channel = "CALL"
	}
	return rig.Request{Channel: channel, To: rig.Number(i), Body: "chaos " + strconv.Itoa(i), IdempotencyKey: "chaos-" + strconv.Itoa(i)}
}

// TestRandomKillsInABatch kills workers, the API, Temporal and Postgres while a batch is accepted and
// sent, at a pace that lets it last as long as the kills, and while it settles.
func TestRandomKillsInABatch(t *testing.T) {
	seed := cmp.Or(*seed, uint64(time.Now().UnixNano()))
	t.Logf("seed %d: go test -count=1 -v ./chaos -run TestRandomKillsInABatch -kills %d -batch %d -seed %d", seed, *kills, *batch, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	// Where the pace is under 50 ms, a workflow carries a shard of up to 500: smaller ones make more of them.
	pace := min(time.Duration(*kills)*killEvery/time.Duration(*batch), 40*time.Millisecond)
	r := start(t, map[string]string{"SMS_SEND_INTERVAL": pace.String(), "BATCH_SHARD_SIZE": strconv.Itoa(max(*batch/50, 1))})
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) { b.LatencyMS = 30 }); err != nil {
		t.Fatal(err)
	}

	var accepted rig.Batch
	var tries int
	var both sync.WaitGroup
	both.Go(func() {
		var err error
		accepted, tries, err = r.API.SendBatch(t.Context(), rig.BatchRequest{
			Query: url.Values{"channel": {"SMS"}, "body": {"chaos"}}, File: rig.Recipients(0, *batch), IdempotencyKey: "chaos",
		})
		if err != nil {
			t.Errorf("the batch was not accepted, though the client retried as told: %v", err)
		}
	})
	both.Go(func() {
		time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond)))) // while the file is uploaded
		r.Kill(r.PIDs(rig.PartAPI)...)
		killAtRandom(t, r, random, *kills)
	})
	both.Wait()
	if accepted.Total == *batch {
		auditBatch(t, r, accepted, tries)
	}
}
