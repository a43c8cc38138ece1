package v1

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/notify"
)

// newCSVAnswer begins an answer that is a file, as spreadsheets read it.
func newCSVAnswer(c *gin.Context, name string) (*csv.Writer, error) {
	c.Header("Content-Type", "text/csv; charset=utf-8")
	c.Header("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
	// Excel takes a file without a byte order mark for one in the local encoding.
	_, err := c.Writer.WriteString("\uFEFF")
	out := csv.NewWriter(c.Writer)
	out.UseCRLF = true
	return out, err
}

// harmless keeps a spreadsheet from taking a text for a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func harmless(cell string) string {
	plain := strings.TrimLeft(cell, "'") // where a text has apostrophes of its own, one more is what plainCell takes away
	if strings.IndexAny(plain, "=+-@\t\r") == 0 {
		return "'" + cell
	}
	return cell
}

// plainCell takes away what harmless put in front of a cell.
func plainCell(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && harmless(rest) != rest {
		return rest
	}
	return cell
}

// asDialled is a number as people here write it, or with the country code where that is another one.
func (a *API) asDialled(e164, national string) string {
	if number, err := notify.ParsePhoneNumber(national, a.Settings.DefaultRegion); err == nil && number.E164 == e164 {
		return national
	}
	return e164
}
