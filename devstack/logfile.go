package devstack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	// logLimit is the size beyond which a log is set aside, as NAME.log.1, when its process starts.
	logLimit = 10 << 20
	// logTail is how many of the last lines are shown when a process fails.
	logTail = 12
)

// openLog opens the log of a process for appending and says where this run's part of it begins.
func openLog(path string) (file *os.File, begin int64, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, 0, fmt.Errorf("make the log folder: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("set the full log aside: %w", err)
		}
	}
	file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the log: %w", err)
	}
	if begin, err = file.Seek(0, io.SeekEnd); err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("find the end of the log: %w", err)
	}
	return file, begin, nil
}

// lastLines gives the last lines, indented, that were logged after begin.
func lastLines(path string, begin int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	const enough = 16 << 10
	if info, err := file.Stat(); err == nil && info.Size()-begin > enough {
		begin = info.Size() - enough
	}
	text, err := io.ReadAll(io.NewSectionReader(file, begin, enough))
	if err != nil {
		return ""
	}
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" {
		return ""
	}
	lines := strings.Split(trimmed, "\n")
	return "\n    " + strings.Join(lines[max(0, len(lines)-logTail):], "\n    ")
}
