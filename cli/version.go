package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what the Go command recorded in this binary when it was built.
type version struct {
	Version  string `json:"version"`            // of the module; (devel) for a build from a checkout
	Revision string `json:"revision,omitempty"` // the commit
	Modified bool   `json:"modified"`           // the checkout had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() version {
	v := version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v version) String() string {
	text := "todoku " + v.Version
	if v.Revision != "" {
		text += ", commit " + v.Revision[:min(12, len(v.Revision))]
	}
	if v.Modified {
		text += " with changes"
	}
	return fmt.Sprintf("%s, %s, %s", text, v.Go, v.Platform)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print which build this is",
		Example: "  todoku version\n  todoku version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wantsJSON(cmd) {
				return writeJSON(cmd.OutOrStdout(), readVersion())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), readVersion())
			return err
		},
	}
}
