package store_test

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestWhoeverRevisesATemplateAtTheSameTimeAddsAVersion(t *testing.T) {
	s := openStore(t)
	made, err := s.CreateTemplate(t.Context(), "reminder", notify.SMS, store.TemplateText{Body: "first", Params: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	const people = 16
	var g errgroup.Group
	for n := range people {
		g.Go(func() error {
			_, err := s.ReviseTemplate(t.Context(), made.ID, "", &store.TemplateText{Body: fmt.Sprint("by ", n), Params: []string{}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	versions, err := s.TemplateVersions(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]bool{}
	for i, v := range versions {
		if bodies[v.Body] = true; v.Version != int32(i+1) {
			t.Errorf("version %d is number %d", i+1, v.Version)
		}
	}
	if len(bodies) != people+1 {
		t.Errorf("%d texts are kept, want %d", len(bodies), people+1)
	}
}
