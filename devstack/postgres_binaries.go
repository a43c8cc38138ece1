package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/gofrs/flock"
)

// postgresBinaries is a folder with Postgres's programs.
type postgresBinaries struct {
	folder string
	major  int
}

func (b postgresBinaries) program(name string) string { return filepath.Join(b.folder, name) }

// client is a program that is not needed to run a server: it is in the folder, or where the folder's links lead.
func (b postgresBinaries) client(name string) string {
	if server, err := filepath.EvalSymlinks(b.program("postgres")); err == nil {
		return filepath.Join(filepath.Dir(server), name)
	}
	return b.program(name)
}

// postgresFolders are where Postgres is usually found besides PATH and what pg_config says; within a pattern the newest
// comes first.
var postgresFolders = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // Postgres's own packages for RHEL
	"/usr/libexec/postgresql*",  // Alpine
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// obtainPostgres finds Postgres's programs, and installs or downloads them where there are none. Where a cluster exists
// already, wanted is its major version; a Postgres of another one cannot read it.
func obtainPostgres(ctx context.Context, u *unprivilegedUser, wanted int, say func(string, ...any)) (postgresBinaries, error) {
	found := findPostgres(u)
	if len(found) == 0 {
		if err := installPostgres(ctx, say); err != nil {
			return postgresBinaries{}, err
		}
		if found = findPostgres(u); len(found) == 0 {
			return postgresBinaries{}, errors.New("Postgres was installed, but its programs are in no place that we know: put initdb and postgres on PATH")
		}
	}
	if wanted == 0 {
		return found[0], nil
	}
	for _, b := range found {
		if b.major == wanted {
			return b, nil
		}
	}
	return postgresBinaries{}, fmt.Errorf("the data was made by Postgres %d, but only Postgres %d is installed: install version %[1]d, or move the data away to begin anew",
		wanted, found[0].major)
}

// findPostgres lists the Postgres installations that the user can run, the preferred one first.
func findPostgres(u *unprivilegedUser) []postgresBinaries {
	folders := filepath.SplitList(os.Getenv("PATH"))
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	for _, pattern := range append(postgresFolders, filepath.Join(downloadFolder(), "*", "bin")) {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			panic(err) // the patterns are constants
		}
		slices.SortFunc(matches, func(a, b string) int { return lastNumber(b) - lastNumber(a) })
		folders = append(folders, matches...)
	}
	var found []postgresBinaries
	for _, folder := range folders {
		b := postgresBinaries{folder: folder}
		if _, err := os.Stat(b.program("initdb")); err != nil || !filepath.IsAbs(folder) {
			continue
		}
		if !u.can('x', b.program("initdb")) || !u.can('x', b.program("postgres")) {
			continue
		}
		if b.major = postgresMajor(b.program("postgres")); b.major != 0 {
			found = append(found, b)
		}
	}
	return found
}

var digits = regexp.MustCompile(`\d+`)

// lastNumber is the last number in a path, which for the folders above is the version; 0 if there is none.
func lastNumber(path string) int {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1]) // digits; too many are no version
	return n
}

// postgresMajor asks a postgres program for its major version; 0 if it cannot say.
func postgresMajor(program string) int {
	out, err := exec.Command(program, "--version").Output() // "postgres (PostgreSQL) 15.14 (Debian …)"
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(digits.FindString(string(out))) // nothing found is 0 as well
	return n
}

// installPostgres gets Postgres's programs onto this machine, without a server that runs by itself.
func installPostgres(ctx context.Context, say func(string, ...any)) error {
	if apt, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		say("Postgres is not installed: installing it with apt-get (about a minute; its programs only, no server of the system is started)")
		return installPostgresPackage(ctx, apt)
	}
	say("Postgres is not installed: downloading its programs into %s (about 30 MB)", downloadFolder())
	if err := downloadPostgres(); err != nil {
		return fmt.Errorf("Postgres is not installed (for example: apt-get install postgresql, or brew install postgresql@17) and cannot be downloaded: %w", err)
	}
	return nil
}

// installPostgresPackage installs Debian's package. Left alone, that would also make a cluster and start it; the file
// that forbids this is the one of Debian's pg_createcluster(1).
func installPostgresPackage(ctx context.Context, apt string) error {
	const noCluster = `test -e /etc/postgresql-common/createcluster.conf && sed -Ei 's/^#?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf`
	for _, command := range [][]string{
		{apt, "update"},
		{apt, "install", "-y", "--no-install-recommends", "postgresql-common"},
		{"/bin/sh", "-c", noCluster},
		{apt, "install", "-y", "--no-install-recommends", "postgresql"},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("install Postgres (%s): %w:\n%s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}

// downloadFolder is where downloaded programs are kept; for root it is one that the user who runs Postgres can reach.
func downloadFolder() string {
	const name = "todoku-postgres"
	if os.Geteuid() == 0 {
		return filepath.Join("/var/cache", name)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		return filepath.Join(cache, name)
	}
	return filepath.Join(os.TempDir(), name)
}

// downloadPostgres fetches the programs through embedded-postgres, which has no call for that alone: its Start fetches
// and unpacks them, makes a cluster and runs it. A locale that does not exist ends it after the first half.
func downloadPostgres() error {
	folder := downloadFolder()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the download folder: %w", err)
	}
	lock := flock.New(filepath.Join(folder, "lock"))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the download folder: %w", err)
	}
	defer lock.Close()
	scratch, err := os.MkdirTemp("", "todoku-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	port, err := freePort("127.0.0.1")
	if err != nil {
		return err
	}
	version := embeddedpostgres.V17
	target := filepath.Join(folder, string(version))
	err = embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		Port(uint32(port)).
		CachePath(scratch).
		BinariesPath(target).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(filepath.Join(scratch, "data")).
		Locale("no-such-locale").
		Logger(io.Discard)).Start()
	if postgresMajor(filepath.Join(target, "bin", "postgres")) == 0 {
		return err
	}
	return nil
}
