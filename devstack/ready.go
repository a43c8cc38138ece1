package devstack

import (
	"encoding/json"
	"fmt"
)

// Ready says where everything of a running stack is; it is what the ready file holds, as JSON.
type Ready struct {
	// API is the base URL of the API.
	API string `json:"api"`
	// Temporal is host:port of Temporal's gRPC API; its namespace is "default".
	Temporal string `json:"temporal"`
	// TemporalUI is the base URL of Temporal's Web UI; empty with a Temporal that is not ours.
	TemporalUI string `json:"temporal_ui"`
	// Simulator is the base URL of the simulator; empty with the real Twilio.
	Simulator string `json:"simulator"`
	// DatabaseURL holds the password.
	DatabaseURL string `json:"database_url"`
	// APIKey is the key that the API takes.
	APIKey string `json:"api_key"`
	// Workers are the base URLs at which the workers say how they are.
	Workers []string `json:"workers"`
	// PIDs are the processes that the stack runs now.
	PIDs PIDs `json:"pids"`
}

// PIDs are the processes of a stack; 0 and left out is what it does not run.
type PIDs struct {
	Postgres  int   `json:"postgres,omitempty"`
	Temporal  int   `json:"temporal,omitempty"`
	Simulator int   `json:"simulator,omitempty"`
	API       int   `json:"api,omitempty"`
	Workers   []int `json:"workers"`
}

// write puts the ready file into place.
func (r Ready) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return keepFile(path, append(text, '\n'))
}
