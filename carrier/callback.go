package carrier

import (
	"cmp"
	"fmt"

	"github.com/todoku/todoku/notify"
)

// ParseCallback reads the form of a status callback, whose signature was checked, for the
// notification that the callback's URL names. Words and error codes never heard of pass: the receipt has them as
// they are. A callback
// tells neither its time (SMS) nor an order to rely on: the rank of the words is what orders them.
//
// Its errors name the parameter and do not repeat the value.
func ParseCallback(ch notify.Channel, form Form, notificationID string) (notify.Receipt, error) {
	receipt := notify.Receipt{
		NotificationID: notificationID,
		Channel:        ch,
		ErrorCode:      notify.CarrierErrorCode(form.Get("ErrorCode")),
		UnknownCode:    notify.QuotableCode(form.Get("ErrorCode")),
		Source:         notify.FromWebhook,
	}
	var sidParameter, wordParameter string
	switch ch {
	case notify.SMS:
		sidParameter, wordParameter = "MessageSid", "MessageStatus"
		receipt.SID = cmp.Or(form.Get("MessageSid"), form.Get("SmsSid"))
		receipt.Word = cmp.Or(form.Get("MessageStatus"), form.Get("SmsStatus"))
	case notify.Call:
		sidParameter, wordParameter = "CallSid", "CallStatus"
		receipt.SID = form.Get("CallSid")
		receipt.Word = form.Get("CallStatus")
		receipt.Duration = seconds(form.Get("CallDuration")) // Duration is in minutes
		if by := form.Get("AnsweredBy"); isWord(by) {
			receipt.AnsweredBy = by
		}
	default:
		return notify.Receipt{}, fmt.Errorf("read a callback: the channel is neither SMS nor CALL")
	}
	if !notify.ValidSID(ch, receipt.SID) {
		return notify.Receipt{}, fmt.Errorf("read a callback of %s: %s is missing or is not a SID of the channel", ch, sidParameter)
	}
	if !isWord(receipt.Word) {
		return notify.Receipt{}, fmt.Errorf("read a callback of %s: %s is missing or is not a word", ch, wordParameter)
	}
	return receipt, nil
}

const longestWord = 64

// isWord reports whether s can be one of Twilio's words: some printable ASCII characters.
func isWord(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= longestWord
}
