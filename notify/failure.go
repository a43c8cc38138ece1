package notify

// Our own error codes, beside the carrier's. They are stored in the ledger and part of the API.
const (
	CodeSendDeadline      = "SEND_DEADLINE"           // safe to repeat, but not sent in time
	CodeAmbiguousSend     = "AMBIGUOUS_SEND"          // nobody can tell whether the carrier took it
	CodeNoReceipt         = "NO_RECEIPT"              // sent, and the outcome was never heard
	CodeNotAnswered       = "NOT_ANSWERED"            // a call that completed after 0 s
	CodeAnsweredByMachine = "ANSWERED_BY_MACHINE"     // a call that no person answered, where that is required
	CodeDuplicate         = "DUPLICATE"               // an earlier row of the batch has the same number and parameters
	CodeNumberKind        = "NUMBER_KIND_NOT_ALLOWED" // accepted before; see ALLOWED_NUMBER_KINDS
	CodeBadTemplate       = "BAD_TEMPLATE"            // the template and the parameters do not make a text
	CodeBadRow            = "BAD_ROW"                 // handling the row failed twice because of an error of ours
	CodeGatewayAnswered   = "GATEWAY_ANSWERED"        // stops a sender: something in between answers in Twilio\'s place
)

// explanation is one message in each language. It is for people who send notifications: what
// happened, and where they can do something about it, what.
type explanation struct{ ja, en string }

func (e explanation) in(lang Language) string {
	if lang == Japanese {
		return e.ja
	}
	return e.en
}

// LedgerMessage is FailureMessage in both languages, for the people who read the ledger itself.
func LedgerMessage(code string, channel Channel, word string) string {
	ja, en := FailureMessage(code, channel, word, Japanese), FailureMessage(code, channel, word, English)
	if en == "" {
		return ""
	}
	return ja + " / " + en
}

// FailureMessage explains to people why a notification did not arrive: by the error code (the
// carrier's or one of ours), else by the carrier's word. A code never heard of gives a general
// sentence that contains it. It is empty where there is nothing to explain: no code, and a word that
// is not a failure.
func FailureMessage(code string, channel Channel, word string, lang Language) string {
	if known, ok := codeExplanations[code]; ok {
		return known.in(lang)
	}
	byWord, ok := wordExplanations[channel][word]
	switch {
	case code == "":
		return byWord.in(lang)
	case ok && channel == Call:
		return explanation{byWord.ja + "（コード " + code + "）", byWord.en + " (code " + code + ")"}.in(lang)
	}
	return explanation{
		"配信できませんでした（エラーコード " + code + "）。",
		"It could not be delivered (error code " + code + ").",
	}.in(lang)
}

var wordExplanations = map[Channel]map[string]explanation{
	SMS: {
		"failed":              {"送信できませんでした。", "The SMS could not be sent."},
		"undelivered":         {"相手の端末に届きませんでした。", "The SMS did not reach the phone."},
		"partially_delivered": {"一部しか届きませんでした。", "Only a part of the SMS reached the phone."},
		"canceled":            {"キャンセルされました。", "The SMS was canceled."},
	},
	Call: {
		"busy":      {"通話中でした。", "The line was busy."},
		"no-answer": {"応答なしでした。", "Nobody answered the call."},
		"failed":    {"通話失敗：電話をつなげませんでした。", "The call failed: it could not be connected."},
		"canceled":  {"キャンセルされました。", "The call was canceled."},
	},
}

// The carrier's codes are those of Twilio's error catalogue (twilio.com/docs/api/errors) that an SMS
// or a call can meet; the messages are ours.
var codeExplanations = map[string]explanation{
	CodeSendDeadline:      {"期限までに送信できませんでした。", "It could not be sent in time."},
	CodeAmbiguousSend:     {"送信されたかどうかを確認できませんでした。重複を避けるため、再送していません。", "Nobody can tell whether it was sent. It was not sent again, so that nobody gets two."},
	CodeNoReceipt:         {"送信しましたが、結果の通知が届きませんでした。", "It was sent, but the carrier never reported the outcome."},
	CodeNotAnswered:       {"応答なしでした（通話時間 0 秒）。", "Nobody answered: the call lasted 0 seconds."},
	CodeAnsweredByMachine: {"留守番電話が応答しました。", "An answering machine took the call."},
	CodeDuplicate:         {"同じ一括送信に、同じ宛先と内容の行がすでにあります。", "An earlier row of the batch has the same number and parameters."},
	CodeNumberKind:        {"発信者に高額の料金がかかることのある種類の番号（0990、0570、020 など）のため、発信しませんでした。", "The number is of a kind that may charge the caller a lot (such as 0990, 0570 or 020), so it was not called."},
	CodeBadTemplate:       {"テンプレートと差し込み値から本文を作れませんでした。", "The template and its parameters do not make a text."},
	CodeBadRow:            {"処理中に内部エラーが 2 回発生したため、送信していません。", "An internal error occurred twice while it was handled, so it was not sent."},
	CodeGatewayAnswered: {"Twilio の代わりに途中の機器（プロキシやファイアウォール）が応答しています。原因を取り除いてから再開してください。",
		"Something between Todoku and Twilio, such as a proxy or a firewall, answers in Twilio's place. Fix the cause, then resume."},

	// Busy or unwell: most of these are tried again before they are shown.
	"10004": {"同時通話数の上限に達しました。", "The account has reached its number of calls at one time."},
	"20429": {"Twilio へのリクエストが多すぎます。", "Twilio received too many requests."},
	"20500": {"Twilio の内部エラーです。", "Twilio had an internal error."},
	"20503": {"Twilio が一時的に利用できません。", "Twilio was not available for a moment."},
	"21611": {"送信元の送信待ちが上限に達しました。", "The sender's queue at Twilio is full."},
	"21730": {"Twilio がメンテナンス中です。", "Twilio is under maintenance."},
	"22005": {"発信待ちが上限に達しました。", "The queue of calls at Twilio is full."},

	// The recipient.
	"13223": {"電話番号の形式が正しくありません。", "The phone number's format is wrong."},
	"13224": {"電話番号が正しくありません。", "The phone number is not valid."},
	"13225": {"この番号への発信はブロックされています。", "Calls to this number are blocked."},
	"13226": {"国番号が正しくありません。", "The phone number's country code is wrong."},
	"13227": {"この国や地域への発信は許可されていません。", "Calls to this country or region are not permitted in the Twilio account."},
	"21211": {"宛先の電話番号が正しくありません。", "The recipient's phone number is not valid."},
	"21214": {"宛先の番号に電話をかけられません。", "The recipient's number cannot be reached by a call."},
	"21215": {"この国や地域への発信は許可されていません。", "Calls to this country or region are not permitted in the Twilio account."},
	"21216": {"この番号への発信はブロックされています。", "Calls to this number are blocked."},
	"21217": {"宛先の電話番号が正しくありません。", "The recipient's phone number is not valid."},
	"21408": {"この国や地域への SMS は許可されていません。", "SMS to this country or region is not permitted in the Twilio account."},
	"21610": {"受信者が配信停止（STOP）を希望しています。", "The recipient has opted out (STOP)."},
	"21612": {"この送信元からこの宛先へは送信できません。", "This recipient cannot be reached from this sender."},
	"21614": {"宛先は携帯電話の番号ではありません。", "The recipient's number is not a mobile number."},

	// What was asked for.
	"20001": {"Twilio へのリクエストの項目が正しくありません。", "A parameter of the request to Twilio is wrong."},
	"21205": {"音声の URL が正しくありません。", "The URL of the call's instructions is not valid."},
	"21602": {"本文が空です。", "The body is empty."},
	"21603": {"送信元が指定されていません。", "No sender was given."},
	"21604": {"宛先が指定されていません。", "No recipient was given."},
	"21609": {"結果通知の URL が正しくありません。", "The status callback's URL is not valid: check TODOKU_PUBLIC_URL."},
	"21617": {"本文が 1,600 文字を超えています。", "The body has more than 1,600 characters."},
	"21619": {"本文が空です。", "The body is empty."},
	"21623": {"添付が多すぎます。", "There are too many attachments."},
	"21624": {"有効期間の指定が正しくありません。", "The validity period is not valid."},
	"21626": {"通話イベントの指定が正しくありません。", "The events asked for a call are not valid."},
	"21654": {"コンテンツの指定が必要です。", "The content's SID is missing."},
	"21655": {"コンテンツの指定が正しくありません。", "The content's SID is not valid."},
	"21656": {"コンテンツの変数が正しくありません。", "The content's variables are not valid."},
	"21658": {"項目が長すぎます。", "A parameter of the request is too long."},
	"32018": {"読み上げる本文が長すぎます（TwiML は 4,000 文字まで）。", "The text to speak is too long: TwiML may have 4,000 characters."},
	"35111": {"予約時刻が指定されていません。", "The time to send at is missing."},
	"35114": {"予約時刻が許可された範囲にありません。", "The time to send at is outside of what Twilio permits."},
	"35115": {"予約時刻が許可された範囲にありません。", "The time to send at is outside of what Twilio permits."},
	"35117": {"予約時刻が許可された範囲にありません。", "The time to send at is outside of what Twilio permits."},
	"35118": {"予約には Messaging Service が必要です。", "Sending at a later time needs a Messaging Service."},

	// The account or the sender.
	"10001": {"Twilio のアカウントが有効ではありません。", "The Twilio account is not active."},
	"10002": {"トライアルアカウントでは利用できない機能です。", "A trial account cannot use this feature."},
	"30454": {"トライアルアカウントの送信数の上限に達しました。", "The trial account has reached its number of messages."},
	"30990": {"送信元のキャンペーンが停止されています（A2P 10DLC）。", "The sender's campaign is suspended (A2P 10DLC)."},
	"63038": {"アカウントの 24 時間あたりの送信数の上限に達しました。", "The account has reached its number of messages for 24 hours."},
	"90010": {"Twilio のアカウントが有効ではありません。", "The Twilio account is not active."},
	"20003": {"Twilio の認証に失敗しました。", "Twilio refused the credentials, or the account is suspended."},
	"20005": {"Twilio のアカウントが有効ではありません。", "The Twilio account is not active."},
	"20006": {"Twilio のアカウントに権限がありません。", "The Twilio credentials have no access to this."},
	"20010": {"Twilio のアカウントが停止されています。", "The Twilio account is suspended."},
	"21210": {"発信元の番号が確認されていません。", "The calling number is not verified with Twilio."},
	"21212": {"送信元の番号が正しくありません。", "The sender's number is not valid."},
	"21219": {"トライアルアカウントのため、確認済みの番号にしか発信できません。", "A trial account can call only numbers that it has verified."},
	"21606": {"送信元の番号は SMS を送信できません。", "The sender's number cannot send SMS."},
	"21608": {"トライアルアカウントのため、確認済みの番号にしか送信できません。", "A trial account can send only to numbers that it has verified."},
	"21659": {"送信元の番号は Twilio の番号ではありません。", "The sender's number is not a Twilio number."},
	"21660": {"送信元の番号はこのアカウントのものではありません。", "The sender's number does not belong to this Twilio account."},
	"21701": {"Messaging Service が見つかりません。", "The Messaging Service does not exist."},
	"21703": {"Messaging Service に送信元の番号がありません。", "The Messaging Service has no sender."},
	"21704": {"Messaging Service に送信元の番号がありません。", "The Messaging Service has no sender."},
	"21705": {"Messaging Service が正しくありません。", "The Messaging Service is not valid."},
	"30002": {"Twilio のアカウントが停止されています。", "The Twilio account was suspended."},
	"30024": {"送信元の番号が登録されていません。", "The sender's number is not provisioned with the operators."},
	"30032": {"フリーダイヤルの送信元が審査されていません。", "The toll-free sender is not verified."},
	"30034": {"送信元の番号が登録されていません（A2P 10DLC）。", "The sender's number is not registered (A2P 10DLC)."},

	// What became of it on the way.
	"30001": {"送信待ちがあふれました。", "The queue at Twilio overflowed."},
	"30003": {"端末の電源が切れているか、圏外です。", "The phone is switched off or out of reach."},
	"30004": {"受信が拒否されました。", "The message was blocked: the recipient or the operator takes none."},
	"30005": {"宛先の番号は使われていません。", "The recipient's number is unknown or no longer in use."},
	"30006": {"宛先は固定電話か、SMS を受信できない番号です。", "The recipient's number is a landline, or its operator cannot be reached."},
	"30007": {"迷惑メッセージと判定されました。", "The operator's filter took the message for spam."},
	"30008": {"原因不明の理由で届きませんでした。", "It was not delivered, and the operator does not say why."},
	"30017": {"携帯電話網が混雑しています。", "The operator's network is congested."},
	"30022": {"送信速度が上限を超えました。", "The sender was faster than the operator permits."},
	"30023": {"1 日の送信数の上限に達しました。", "The sender has reached its number of messages for the day."},
	"30027": {"1 日の送信数の上限に達しました。", "The sender has reached its number of messages for the day."},
	"30036": {"有効期間内に届きませんでした。", "It was not delivered within its validity period."},
	"30410": {"携帯電話事業者から応答がありませんでした。", "The operator did not answer in time."},
	"30450": {"不正な大量送信の疑いがあるため、止められました。", "It was blocked because it looks like fraud (SMS pumping)."},
	"30500": {"Twilio の内部エラーです。", "Twilio had an internal error."},
	"63017": {"送信速度が上限を超えました。", "The account was faster than Twilio permits."},
	"63018": {"送信速度が上限を超えました。", "The sender was faster than Twilio permits."},
}
