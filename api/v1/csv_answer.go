package v1

import (
	"encoding/csv"
	"fmt"

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

// asDialled is a number as people here write it, or with the country code where that is another one.
func (a *API) asDialled(e164, national string) string {
	if number, err := notify.ParsePhoneNumber(national, a.Settings.DefaultRegion); err == nil && number.E164 == e164 {
		return national
	}
	return e164
}
