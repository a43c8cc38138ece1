package simulator

// The GSM 03.38 alphabet: characters of one septet, and of two (an escape and the character).
const (
	gsm7Basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsm7Extended = "\f^{}\\[~]|€"
)

// gsm7Septets is the number of septets that each character of the alphabet takes.
var gsm7Septets = func() map[rune]int {
	septets := make(map[rune]int)
	for _, char := range gsm7Basic {
		septets[char] = 1
	}
	for _, char := range gsm7Extended {
		septets[char] = 2
	}
	return septets
}()

// segments counts the SMS that carry a body: 160 septets alone and 153 each when joined, where every character
// is in the GSM-7 alphabet; else 70 and 67 UTF-16 units. A character is never split over two. An empty body
// (media only) takes one.
func segments(body string) int {
	if isGSM7(body) {
		return count(body, 160, 153, func(char rune) int { return gsm7Septets[char] })
	}
	return count(body, 70, 67, utf16Units)
}

func count(body string, alone, joined int, size func(rune) int) int {
	total, segments, used := 0, 1, 0
	for _, char := range body {
		n := size(char)
		total += n
		if used+n > joined {
			segments++
			used = 0
		}
		used += n
	}
	if total <= alone {
		return 1
	}
	return segments
}

func isGSM7(body string) bool {
	for _, char := range body {
		if gsm7Septets[char] == 0 {
			return false
		}
	}
	return true
}

func utf16Units(char rune) int {
	if char > 0xFFFF {
		return 2
	}
	return 1
}
