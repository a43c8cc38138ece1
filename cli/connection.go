package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settings"
)

// defaultURL is where `todoku api` listens when it is not told otherwise.
const defaultURL = "http://127.0.0.1:8080"

// How a URL was found, for people, where no flag or setting gave it.
const (
	originDev   = "`todoku dev` in this folder"
	originUsual = "the usual place, for TODOKU_URL is not set"
)

// connection says where the API is and with which key to ask it.
type connection struct {
	url    string // without a slash at the end
	origin string // how url was found, for people
	key    string
}

// addConnectionFlags gives a command, and those below it, the flags that findConnection reads. There
// is none for the key itself: what stands on a command line, every user of the machine can read.
func addConnectionFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().String("api-url", "", "the API's base `URL` (else TODOKU_URL, else that of `todoku dev` in this folder)")
	cmd.PersistentFlags().String("allow-http", "", "the one `host` besides this machine that may get the key over http (else TODOKU_ALLOW_HTTP)")
	cmd.PersistentFlags().String("api-key-file", "", "a `file` that holds the API key (else TODOKU_API_KEY, TODOKU_API_KEY_FILE, or that of `todoku dev`)")
}

// findConnection takes the flags first, then the environment and .env, then what a `todoku dev` in
// this folder says. The key of a `todoku dev` goes to its own API only.
func findConnection(cmd *cobra.Command) (connection, error) {
	environment, err := environ()
	if err != nil {
		return connection{}, err
	}
	var c connection
	if c.key, err = findKey(cmd, environment); err != nil {
		return c, err
	}
	flag, _ := cmd.Flags().GetString("api-url")
	switch {
	case flag != "":
		c.url, c.origin = flag, "--api-url"
	case environment["TODOKU_URL"] != "":
		c.url, c.origin = environment["TODOKU_URL"], "TODOKU_URL"
	}
	if c.url != "" {
		if c.url, err = baseURL(c.url, c.origin); err != nil {
			return c, err
		}
	}
	running, found, err := runningDev()
	if err != nil && (c.url == "" || c.key == "") {
		return c, err
	}
	if found && (c.url == "" || c.url == running.API) {
		c.url, c.origin = running.API, cmp.Or(c.origin, originDev)
		c.key = cmp.Or(c.key, running.APIKey)
	}
	switch {
	case c.key == "" && c.url == "":
		return c, errors.New("no API found: run `todoku dev` in this folder, or set TODOKU_URL and TODOKU_API_KEY")
	case c.key == "":
		return c, fmt.Errorf("no API key for %s: set TODOKU_API_KEY, or give --api-key-file", c.url)
	case c.url == "":
		c.url, c.origin = defaultURL, originUsual
	}
	allowed, _ := cmd.Flags().GetString("allow-http")
	return c, c.checkTransport(cmp.Or(allowed, environment["TODOKU_ALLOW_HTTP"]))
}

// checkTransport refuses to send the key over a network unencrypted, except to the host that is allowed by name.
func (c connection) checkTransport(allowed string) error {
	u, err := url.Parse(c.url)
	if err != nil || u.Scheme == "https" || settings.Loopback(u.Hostname()) || strings.EqualFold(u.Hostname(), allowed) {
		return nil // baseURL has found what cannot be read
	}
	return usageErrorf("%s (%s) would get the API key unencrypted: write https, or allow it with --allow-http %s", c.url, c.origin, u.Hostname())
}

// baseURL checks a URL that origin gave, and takes slashes from its end.
func baseURL(text, origin string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usageErrorf("%s is no base URL: write http://HOST:PORT or https://HOST", origin)
	}
	return strings.TrimRight(text, "/"), nil
}

func findKey(cmd *cobra.Command, environment map[string]string) (string, error) {
	file, origin := environment["TODOKU_API_KEY_FILE"], "TODOKU_API_KEY_FILE"
	if flag, _ := cmd.Flags().GetString("api-key-file"); flag != "" {
		file, origin = flag, "--api-key-file"
	} else if key := environment["TODOKU_API_KEY"]; key != "" {
		return key, nil
	}
	if file == "" {
		return "", nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", origin, err)
	}
	key := strings.TrimSpace(string(withoutMark(content)))
	if key == "" {
		return "", fmt.Errorf("%s: %s is empty", origin, file)
	}
	return key, nil
}

// messageLanguage is the language that the machine is set to, for the API's messages to people.
func messageLanguage() string {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	locale, _, _ = strings.Cut(locale, ".")
	locale, _, _ = strings.Cut(locale, "@")
	if locale == "" || locale == "C" || locale == "POSIX" {
		return "en"
	}
	return strings.ReplaceAll(locale, "_", "-")
}

// timezone is that of DEFAULT_TIMEZONE, in which times are shown to people.
func timezone() (*time.Location, error) {
	environment, err := environ()
	if err != nil {
		return nil, err
	}
	name := cmp.Or(environment["DEFAULT_TIMEZONE"], "Asia/Tokyo")
	zone, err := notify.LoadZone(name)
	if err != nil {
		return nil, fmt.Errorf("DEFAULT_TIMEZONE is %q, which is no zone of the IANA database such as Asia/Tokyo", name)
	}
	return zone, nil
}
