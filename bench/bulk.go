package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/notify"
)

// bulkTimesPeer is how many times as fast as the peer a batch must be.
const bulkTimesPeer = 4

// bulkBesidePeer has the bare loop, the peer in both of its ways, and ourselves send one text to many.
func (s sizes) bulkBesidePeer(ctx context.Context, r *rig.Rig, p *peer, report *Report) error {
	if s.rounds == 0 || s.bulk == 0 {
		return nil
	}
	if err := r.Simulator.Reset(ctx); err != nil {
		return err
	}
	if _, err := sendBatch(ctx, r, min(s.bulk, 1000)); err != nil {
		return fmt.Errorf("warm-up of batches: %w", err)
	}
	var used usage
	lost := 0
	contest := []contestant{s.bareContestant(r, s.bulk)}
	if p != nil {
		contest = append(contest, p.contestant(s.bulk, peerEach, &lost), p.contestant(s.bulk, peerBulk, &lost))
	}
	contest = append(contest, contestant{ours, func(ctx context.Context) (float64, error) {
		defer used.since(r, r.CPU())
		return sendBatch(ctx, r, s.bulk)
	}})
	took, err := s.inRounds(ctx, r, "batches", contest)
	if err != nil {
		return err
	}
	batch := besidePeers(figure{what: fmt.Sprintf("a batch of %d: file uploaded, each sent, recorded and settled by webhook", s.bulk)}, took, bulkTimesPeer)
	batch.measured += fmt.Sprintf(", %.2f × the bare loop", took[ours].median()/took[bare].median())
	report.add(batch)
	report.add(used.figure(s.rounds * s.bulk))
	report.tellLost("batches", lost, 2*s.rounds*s.bulk)
	return nil
}

// sendBatch sends one text to n recipients and waits until all are SUCCESS. It returns how many a second
// that were.
func sendBatch(ctx context.Context, r *rig.Rig, n int) (perSecond float64, err error) {
	file := rig.Recipients(0, n)
	began := time.Now()
	b, _, err := r.API.SendBatch(ctx, rig.BatchRequest{Query: url.Values{"channel": {"SMS"}, "body": {text}}, File: file})
	if err != nil {
		return 0, err
	}
	if err := awaitBatch(ctx, r, b.ID); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return float64(n) / took.Seconds(), eachOnce(ctx, r, b)
}

// eachOnce fails unless all notifications of the batch, and nothing else, were created once and delivered.
func eachOnce(ctx context.Context, r *rig.Rig, b rig.Batch) error {
	statuses, err := r.Ledger.Statuses(ctx, b.ID)
	if err != nil {
		return err
	}
	if statuses[notify.Success] != b.Total {
		return fmt.Errorf("of %d recipients not all are SUCCESS: %v", b.Total, statuses)
	}
	return arrived(ctx, r, b.Total)
}

// awaitBatch waits until every notification of a batch is final. It fails when none becomes so for long.
func awaitBatch(ctx context.Context, r *rig.Rig, id uuid.UUID) error {
	for left, changed := -1, time.Now(); ; {
		b, err := r.API.Batch(ctx, id)
		switch {
		case err != nil:
			return err
		case b.Open() == 0:
			return nil
		case b.Open() != left:
			left, changed = b.Open(), time.Now()
		case time.Since(changed) > patience:
			return fmt.Errorf("of a batch %d did not settle", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

const (
	acceptedWithin = 3 * time.Second // 100,000 recipients

	// A large file may take so much more memory than a small one: what the collector of garbage happens
	// to leave, and nothing that grows with the file.
	flatMemory = 48 << 20
)

// acceptance uploads a large file for a template with a parameter, to be sent later, and a tenth of it
// before, to see whether memory grows with the size.
func (s sizes) acceptance(ctx context.Context, r *rig.Rig, report *Report) error {
	if s.rounds == 0 || s.upload == 0 {
		return nil
	}
	u, err := newUploader(ctx, r)
	if err != nil {
		return err
	}
	var small, large int64
	var took durations
	for range s.rounds {
		if _, grown, err := u.upload(ctx, s.upload/10); err != nil {
			return err
		} else {
			small = max(small, grown)
		}
		each, grown, err := u.upload(ctx, s.upload)
		if err != nil {
			return err
		}
		took, large = append(took, each), max(large, grown)
	}
	report.add(figure{
		what: fmt.Sprintf("a file of %d recipients and a template accepted (durable, 202)", s.upload), must: fmt.Sprintf("within %v for 100,000", acceptedWithin),
		measured: took.String(), holds: took.median() <= acceptedWithin*time.Duration(max(s.upload, 100_000))/100_000,
	})
	report.add(figure{
		what: "of these: memory that the API took for it", must: "flat, whatever the size",
		measured: inMB(large) + " more than before", beside: fmt.Sprintf("%s for a file of %d", inMB(small), s.upload/10),
		holds: large-small <= flatMemory,
	})
	return nil
}

// uploader uploads files of recipients that are sent an hour later, or never.
type uploader struct {
	r        *rig.Rig
	template string
}

func newUploader(ctx context.Context, r *rig.Rig) (*uploader, error) {
	id, err := r.API.Template(ctx, uuid.NewString(), "{{name}}様、"+text)
	return &uploader{r, strconv.FormatInt(id, 10)}, err
}

// upload uploads n recipients, and returns how long that took and by how much the API's memory grew.
func (u *uploader) upload(ctx context.Context, n int) (took time.Duration, grown int64, err error) {
	query := url.Values{"channel": {"SMS"}, "template_id": {u.template}, "send_at": {time.Now().Add(time.Hour).Format(time.RFC3339)}}
	file := rig.Recipients(0, n)
	u.r.ForgetPeaks(rig.PartAPI)
	before, _ := u.r.Memory(rig.PartAPI)
	began := time.Now()
	b, _, err := u.r.API.SendBatch(ctx, rig.BatchRequest{Query: query, File: file})
	took = time.Since(began)
	if err == nil && b.Total != n {
		err = fmt.Errorf("of %d recipients %d were accepted", n, b.Total)
	}
	_, peak := u.r.Memory(rig.PartAPI)
	return took, peak - before, err
}

func inMB(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20)) }
