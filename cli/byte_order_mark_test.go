package cli

import (
	"testing"

	"github.com/todoku/todoku/notify"
)

func TestWhatEditorsOfWindowsWriteIsReadAsWithoutAByteOrderMark(t *testing.T) {
	term := newTerminal(t)
	term.writeFile(".env", "\uFEFFTODOKU_A=file\nTODOKU_B=file\n")
	environment, err := environ()
	if err != nil || environment["TODOKU_A"] != "file" || environment["TODOKU_B"] != "file" {
		t.Errorf(".env: TODOKU_A is %q, error %v", environment["TODOKU_A"], err)
	}

	requests := standInAPI(t, says(202, notification(`{}`)))
	term.input = "\uFEFFご予約は明日です。\r\n"
	term.writeFile("key", "\uFEFFtdk_file\r\n")
	term.succeeds("send", "sms", "--to", "090-1234-5678", "--body", "-", "--api-key-file", "key")
	if sent := (*requests)[0]; sent.Body["body"] != "ご予約は明日です。" || sent.Authorization != "Bearer tdk_file" {
		t.Errorf("asked %+v", sent)
	}

	requests = standInAPI(t, says(201, `{"id":1,"name":"x","channel":"SMS","version":1,"body":"x","params":[],"kinds":{}}`))
	term.input = "\uFEFF{{name}}様\n"
	term.succeeds("template", "create", "--name", "x", "--channel", "sms", "--body", "-")
	if sent := (*requests)[0]; sent.Body["body"] != "{{name}}様" {
		t.Errorf("asked %+v", sent)
	}

	term.writeFile("r.csv", "\uFEFFto,name\n1,x\n")
	file, again := recipientsFile(nil, "r.csv", "")
	content, err := file.open()
	if err != nil || !again {
		t.Fatal(err)
	}
	defer content.Close()
	if reader, err := notify.NewRecipientReader(content, ""); err != nil || reader.Encoding() != "utf-8" {
		t.Errorf("r.csv: %v", err)
	}
}
