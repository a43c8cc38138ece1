package simulator

// Twilio's magic numbers, which fail with the error that each stands for.
// https://www.twilio.com/docs/iam/test-credentials. With test credentials Twilio refuses every sender but
// +15005550006; here every other sender is a good one.

// servicePoolNumber is the sender that a Messaging Service picks where the create names none.
const servicePoolNumber = "+15005550006"

// refuseMagicMessage fails the form as a message from or to a magic number.
func (f *form) refuseMagicMessage(to, from string) {
	switch from {
	case "+15005550001":
		f.refuse(21212, "The 'From' number %s is not a valid phone number, shortcode, or alphanumeric sender ID.", from)
	case "+15005550007":
		f.refuse(21606, "The 'From' phone number provided (%s) is not a valid message-capable Twilio phone number"+
			" for this destination/account.", from)
	case "+15005550008":
		f.refuse(21611, "This 'From' number %s has exceeded the maximum number of queued messages.", from)
	}
	switch to {
	case "+15005550001":
		f.refuse(21211, "The 'To' number %s is not a valid phone number.", to)
	case "+15005550003":
		f.refuse(21408, "Permission to send an SMS has not been enabled for the region indicated by the 'To'"+
			" number: %s.", to)
	case "+15005550009":
		f.refuse(21614, "'To' number is not a valid mobile number: %s", to)
	}
	if _, ok := serviceFailures[to]; !ok || from == "" {
		return // a Messaging Service finds out later, by callback
	}
	switch to {
	case "+15005550002":
		f.refuse(21612, "Message cannot be sent with the current combination of 'To' (%s) and/or 'From' (%s)"+
			" parameters.", to, from)
	case "+15005550004":
		f.refuse(21610, "Attempt to send to unsubscribed recipient: %s", to)
	}
}

// serviceFailures are the magic numbers that a Messaging Service accepts, as Twilio does, and fails afterwards.
var serviceFailures = map[string]*MessageOutcome{
	"+15005550002": {Status: "failed", ErrorCode: new(21612)},
	"+15005550004": {Status: "failed", ErrorCode: new(21610)},
}

// refuseMagicCall fails the form as a call from or to a magic number.
func (f *form) refuseMagicCall(to, from string) {
	switch from {
	case "+15005550001":
		f.refuse(21212, "Invalid 'From' Phone Number: %s", from)
	case "+15005550007", "+15005550008":
		f.refuse(21210, "The source phone number provided, %s, is not yet verified for your account. You may only"+
			" make calls from phone numbers that you've verified or purchased from Twilio.", from)
	}
	switch to {
	case "+15005550001":
		f.refuse(21217, "Phone number %s does not appear to be valid.", to)
	case "+15005550002":
		f.refuse(21214, "The phone number you are attempting to call, %s, cannot be reached.", to)
	case "+15005550003":
		f.refuse(21215, "Account not authorized to call %s. Perhaps you need to enable some international"+
			" permissions.", to)
	case "+15005550004":
		f.refuse(21216, "Account not allowed to call %s.", to)
	}
}
