package main

import (
	"os/exec"
	"strings"
	"testing"
)

// layers are the folders from the top to the bottom: each imports only what stands below it, and what stands in itself.
var layers = [][]string{
	{"bench", "chaos"},
	{"main"},
	{"cli"},
	{"api", "worker"},
	{"starter"},
	{"workflows"},
	{"activities"},
	{"outbox", "settlement"},
	{"carrier", "devstack"},
	{"migrations", "simulator"},
	{"store"},
	{"settings", "taskrouter"},
	{"notify"},
	{"clock", "panics"},
}

const module = "github.com/todoku/todoku"

func TestImportsPointDownwards(t *testing.T) {
	t.Parallel()
	at := map[string]int{}
	for layer, folders := range layers {
		for _, folder := range folders {
			at[folder] = layer
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		from, _ := folderOf(paths[0])
		if _, known := at[from]; !known {
			t.Errorf("the folder %s has no layer: give it one", from)
			continue
		}
		packages++
		for _, path := range paths[1:] {
			if to, ours := folderOf(path); ours && to != from && at[to] <= at[from] {
				t.Errorf("%s imports %s, which is not below it", paths[0], path)
			}
		}
	}
	if packages < len(layers) {
		t.Errorf("only %d packages were looked at", packages)
	}
}

// folderOf is the folder at the top level in which a package of this module is, and whether it is one.
func folderOf(path string) (folder string, ours bool) {
	if path == module {
		return "main", true
	}
	inside, ours := strings.CutPrefix(path, module+"/")
	folder, _, _ = strings.Cut(inside, "/")
	return folder, ours
}
