wattlock/v1
-> X25519 54RVsXVn3/KD06bGB6pvB7fFCyWt53DUT2mDn3c6rxg
DZ079E4SppbVRWGt73Q0Lq+HqBY93tVpRR0rXDCRR4o
=> data-key CZ06AnnzLwtc0/u2nXL9Mg
DnMDldD4dztmZocACxSBhggEevWwyIsZlo5knJJrIjpaKlXCrNAbvKB7jAwwp7KX

=> metadata 0bs7OEzRRHG7pWlfxl+33w
PsSVgYKWcjSMXrBU8kPmbTzDB9hOpufxBeDYjgr4WugwUP8g80OTqqbY9+Ur9UXC
vh+xKx5/RwJWmzbriZ5BMNTiz6Qi+XGFCCFHgmB0t3M
--- dfFohCdLT5v8R8aqBj8DbfQ0AQ3c0wiBZr6Fr9Eyh9o
Ò{¢ñäµNíêÊ§Ý‹¤±¸[á«zïoä¾¯œt/ÔŽãÁ˜KßüS¿ÿutžèV ¨37šM{µ’Ÿ&ÏfKC¬mV†AUxìýÀ€ &¿aÅw¶·Á¶Ù†É¨M¿Ò/{Ëùk/¼1•¡îÇ)_-	Ú Èè[è1ÿÁÁùOÉ`ï°ÿ^%w@PîCpeZÆîU·Ê=²ŽêÈvZÿÛxùÁÏŽ„n