package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/joho/godotenv"
)

// environ is the process's environment and, for what that does not have, the file .env in the
// present folder. A secret NAME counts as set where NAME_FILE is, and the other way round, so that
// the two sources never contradict each other.
func environ() (map[string]string, error) {
	environment := make(map[string]string)
	for _, line := range os.Environ() {
		if name, value, ok := strings.Cut(line, "="); ok {
			environment[name] = value
		}
	}
	text, err := os.ReadFile(".env")
	var added map[string]string
	if err == nil {
		added, err = godotenv.UnmarshalBytes(withoutMark(text))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return environment, nil
	case errors.As(err, new(*fs.PathError)):
		return nil, err // names the file
	case err != nil:
		// The library's error quotes the file, which holds secrets.
		return nil, errors.New(".env in this folder cannot be read: write one NAME=value on each line, with the value in single quotes if it has spaces, quotes or $ in it")
	}
	own := func(name string) bool { _, ok := environment[name]; return ok }
	for name := range added {
		if own(name) || own(name+"_FILE") || own(strings.TrimSuffix(name, "_FILE")) {
			delete(added, name)
		}
	}
	for name, value := range added {
		environment[name] = value
	}
	return environment, nil
}

// withoutMark leaves out the byte order mark that editors and shells of Windows write in front of a text.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\uFEFF")) }

// besideDotEnv completes the error of a service, which reads the environment only, where a file .env in
// the present folder may have what it lacks.
func besideDotEnv(err error) error {
	if _, absent := os.Stat(".env"); absent != nil {
		return err
	}
	return fmt.Errorf("%w; services do not read the .env in this folder: put it into the environment, as by set -a; . ./.env; set +a", err)
}
