package notify

import "strings"

// HarmlessCell keeps a spreadsheet from taking a text for a formula, as OWASP lists them
// (https://owasp.org/www-community/attacks/CSV_Injection), by an apostrophe in front.
func HarmlessCell(cell string) string {
	if isFormula(cell) {
		return "'" + cell
	}
	return cell
}

// PlainCell takes away what HarmlessCell put in front of a cell.
func PlainCell(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && isFormula(rest) {
		return rest
	}
	return cell
}

// isFormula sees through spaces and quotes in front, which spreadsheets may drop, and through apostrophes of
// the text's own: one more is what PlainCell takes away.
func isFormula(cell string) bool {
	if strings.IndexAny(cell, "\t\r\n") == 0 {
		return true
	}
	plain := strings.TrimLeft(cell, "'\"\u201C\u201D\u2018\u2019 \t\r\n\u00A0\u3000\uFEFF")
	return strings.IndexAny(plain, "=+-@＝＋－＠−") == 0
}
