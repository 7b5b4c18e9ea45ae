Bblock2.bn2.weightJ Ç
n<é<½ÜÂÑ<¯px=¤*»¼©\=9k<s`L<