package devstack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PhoneHashKeyFile is the file in a stack's folder that keeps the key for the hashes of numbers.
const PhoneHashKeyFile = "phone-hash-key"

// makeSecrets sees to it that there are a key for the API and one for the hashes of numbers. What the user has not set
// is made up once and kept in the folder. The API's key is there in any case, for the printed curl to read.
func (s *Stack) makeSecrets() error {
	keyFile := s.apiKeyFile()
	key, err := s.env.secret("TODOKU_API_KEY")
	if err != nil {
		return err
	}
	if key != "" {
		err = keepFile(keyFile, []byte(key))
	} else {
		key, err = keptSecret(keyFile)
	}
	if err != nil {
		return err
	}
	s.env.set("TODOKU_API_KEY", key)
	s.ready.APIKey = key
	if s.env.has("PHONE_HASH_KEY") {
		return nil
	}
	hashKey, err := keptSecret(filepath.Join(s.options.Dir, PhoneHashKeyFile))
	if err != nil {
		return err
	}
	s.env.set("PHONE_HASH_KEY", hashKey)
	return nil
}

func (s *Stack) apiKeyFile() string { return filepath.Join(s.options.Dir, "api-key") }

// keptSecret reads a secret from its file, after making one up if there is none.
func keptSecret(path string) (string, error) {
	text, err := os.ReadFile(path)
	if secret := strings.TrimSpace(string(text)); err == nil && secret != "" {
		return secret, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read a kept secret: %w", err)
	}
	secret := rand.Text() + rand.Text() // 260 bits
	return secret, keepFile(path, []byte(secret))
}
