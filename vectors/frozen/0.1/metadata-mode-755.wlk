wattlock/v1
-> X25519 4N6T6myC0/os5F9lfdFv8ZHGvU0yiXVzPtLpRNMyDGo
ZmpgbT9G2Dl47lTejTec2QXVo+57XmYaPGxeTrfft/8
=> data-key /NhDtqBS7HRNI7ENZrd+jg
1c/T4Nufa7GR5TP8yI0HUsRlfW6CyCuq2dalhd5xee/h08OC6YQ4MrmhsC4X4XOd

=> metadata cNa5LeZmNbkught6aeWH+w
8mgz8enZ/peTFBYRic4urmTgzrOt9vgS+A2wlWLqzQ2SHtghICsoBkbPClXO541p
LEC0PjhDLoL02jMuXJRZVI5LGAKiR2UAnNlNhPJAyjc
--- FtT35vEdGTLm6qKNPth8+yYGmi0+jVC3iS4vLDCcu9o
U¤¤MBÀƒ±ÇÃ‰æ·eQéT}Y|’ný5•ªü£Ù¨b…”¦Sä¯9Z…²Æ:ò²q1ð…>Äì—k3Mþ„£	³^ÑÆ£#&E‰…BQ‡÷C]€K`•ý¢’^äEêö¯ÐÝçˆ­'•¦x­ÏC8U»U\û	È|˜	§‘Tƒ:ú·²tìMãßà«§˜†´ËoÌÖtÕ8üÂr