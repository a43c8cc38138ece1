package settings

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASecretsFileMayBeginWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("\uFEFFnotarealtoken\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	resolved, err := withSecretFiles(map[string]string{"TWILIO_AUTH_TOKEN_FILE": path})
	if err != nil || resolved["TWILIO_AUTH_TOKEN"] != "notarealtoken" {
		t.Errorf("the token is read as %q, error %v", resolved["TWILIO_AUTH_TOKEN"], err)
	}
}
