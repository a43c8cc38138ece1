package cli

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/store"
)

// TestComposeMakesARoleForEachPurpose runs what docker-compose.yml lets a new Postgres run, and then what its services
// do.
func TestComposeMakesARoleForEachPurpose(t *testing.T) {
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed (apt-get install postgresql-client)")
	}
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(compose.Configs["postgres-roles"].Content, "$$", "$")
	server, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	admin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	// The roles' URLs as `make secrets` writes them, but for the host
	secrets := t.TempDir()
	urlOf := func(role string) string {
		return "postgres://" + role + ":0123abcd" + role + "@" + admin.Host + "/todoku?sslmode=disable"
	}
	for name, content := range map[string]string{
		"owner_database_url": urlOf("todoku_owner") + "\n",
		"app_database_url":   urlOf("todoku_app") + "\n",
		"temporal_env":       "SQL_PASSWORD=0123abcdtemporal\nPOSTGRES_PWD=0123abcdtemporal\n",
	} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(content), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	password, _ := admin.User.Password()
	run := exec.Command("bash", "-eo", "pipefail", "-c", strings.ReplaceAll(script, "/run/secrets", secrets))
	run.Env = append(os.Environ(), "PATH="+filepath.Dir(psql)+":"+os.Getenv("PATH"),
		"POSTGRES_USER=todoku", "POSTGRES_DB=todoku", "PGHOST="+admin.Hostname(), "PGPORT="+admin.Port(), "PGPASSWORD="+password)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	if _, err := migrations.Up(t.Context(), urlOf("todoku_owner")); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	if err := migrations.Grant(t.Context(), urlOf("todoku_owner"), "todoku_app"); err != nil {
		t.Fatalf("grant: %v", err)
	}
	if err := migrations.Check(t.Context(), urlOf("todoku_app")); err != nil {
		t.Errorf("the application checks the schema: %v", err)
	}
	app, err := store.Open(t.Context(), urlOf("todoku_app"))
	if err != nil {
		t.Fatal(err)
	}
	app.Close()

	for _, refused := range []struct{ url, statement string }{
		{urlOf("todoku_app"), `DROP TABLE notifications`},
		{urlOf("todoku_app"), `CREATE TABLE intruder ()`},
		{urlOf("todoku_app"), `UPDATE goose_db_version SET is_applied = false`},
		{urlOf("todoku_owner"), `CREATE ROLE intruder`},
		{urlOf("temporal"), `SELECT`}, // it may not even connect
	} {
		if err := execAs(t, refused.url, refused.statement); err == nil {
			t.Errorf("%s may run %s", refused.url, refused.statement)
		}
	}
	maintenance := strings.Replace(urlOf("temporal"), "/todoku?", "/postgres?", 1)
	if err := execAs(t, maintenance, `CREATE DATABASE temporal`); err != nil {
		t.Errorf("Temporal makes its database: %v", err)
	}
}

func execAs(t *testing.T, databaseURL, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), statement)
	return err
}
