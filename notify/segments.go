package notify

// Encoding is how an SMS travels.
type Encoding string

const (
	GSM7 Encoding = "GSM-7" // 7 bits a character, Latin and some Greek
	UCS2 Encoding = "UCS-2" // UTF-16; every Japanese text
)

// SegmentInfo says what an SMS costs: carriers charge for each segment.
type SegmentInfo struct {
	Encoding   Encoding
	Segments   int // 0 for an empty body
	Units      int // septets (GSM-7) or UTF-16 code units (UCS-2)
	Characters int // Unicode code points
}

// The alphabet and the extension table of 3GPP TS 23.038 (GSM 03.38), sections 6.2.1 and 6.2.1.1.
// A character of the extension table is an escape and a second septet.
const (
	gsmAlphabet = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtension = "\f^{}\\[~]|€"
)

// What fits into 140 octets: alone, or beside the 6 octets of header that join the segments of a
// long message (3GPP TS 23.040, section 9.2.3.24).
const (
	gsmSingle, gsmJoined = 160, 153
	ucsSingle, ucsJoined = 70, 67
)

// Segments tells how a carrier encodes and splits a body, as Twilio counts it
// (github.com/TwilioDevEd/message-segment-calculator): one character outside GSM-7 makes the whole
// body UCS-2, and neither an escape pair nor a surrogate pair is split over two segments.
func Segments(body string) SegmentInfo {
	info := SegmentInfo{Encoding: GSM7}
	for _, r := range body {
		info.Characters++
		if gsmUnits(r) == 0 {
			info.Encoding = UCS2
		}
	}
	units, single, joined := gsmUnits, gsmSingle, gsmJoined
	if info.Encoding == UCS2 {
		units, single, joined = ucsUnits, ucsSingle, ucsJoined
	}
	used := 0 // of the present segment of a long message
	for _, r := range body {
		n := units(r)
		info.Units += n
		if info.Segments == 0 || used+n > joined {
			info.Segments++
			used = 0
		}
		used += n
	}
	if 0 < info.Units && info.Units <= single {
		info.Segments = 1
	}
	return info
}

// gsmUnits is how many septets a character takes, or 0 if GSM-7 does not have it.
func gsmUnits(r rune) int { return gsmSeptets[r] }

var gsmSeptets = func() map[rune]int {
	septets := make(map[rune]int)
	for _, r := range gsmAlphabet {
		septets[r] = 1
	}
	for _, r := range gsmExtension {
		septets[r] = 2
	}
	return septets
}()

func ucsUnits(r rune) int {
	if r > 0xFFFF {
		return 2 // a surrogate pair
	}
	return 1
}
