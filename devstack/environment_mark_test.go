package devstack

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASecretsFileMayBeginWithAByteOrderMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("\uFEFFnotarealtoken\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := (environment{"TOKEN_FILE": path}).secret("TOKEN"); err != nil || token != "notarealtoken" {
		t.Errorf("the token is read as %q, error %v", token, err)
	}
}
